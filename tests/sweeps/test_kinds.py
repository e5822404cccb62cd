"""Sweeps over every kind: what GET answers can be sent back, every field is documented, and every older name accepted."""

from typing import Any, Final

import pytest

from tests.api_client import ApiClient, read_field_errors
from tests.database_state import DatabaseState
from tests.fixture_types import Run
from trellis.core.fields import Field
from trellis.core.kind import NodeKind
from trellis.core.verbs import CREATE, GET, LIST, UPDATE
from trellis.kinds import KINDS

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
OVER_REST: Final = [kind for kind in KINDS if all(map(kind.serves, (CREATE, GET, UPDATE)))]


def test_there_are_some() -> None:
    assert {kind.name for kind in OVER_REST} >= {"forums", "calendars", "categories"}


def fully(kind: NodeKind, run: Run) -> dict[str, Any]:
    """Make a record with every field that has an example set to it, under a parent where there can be one."""
    given = {
        f.name: f.example for f in kind.accepted if f.example is not None and not f.read_only and f.name not in {"before", "after"}
    }
    if kind.tree:
        given["parentId"] = run(kind.operation("create"), name="Parent")["id"]
        given.pop("copyPermissionsFrom", None)
    made = run(kind.operation("create"), **given)
    assert isinstance(made, dict)
    return made


@each_kind
def test_what_is_read_can_be_sent_back_and_changes_nothing(kind: NodeKind, run: Run, database: DatabaseState) -> None:
    made = fully(kind, run)
    got = run(kind.operation("get"), made["id"])
    with database.unchanged():
        assert run(kind.operation("update"), got["id"], **got) == got == made


def test_what_get_answers_can_be_posted_back_over_rest_byte_for_byte(api: ApiClient, run: Run, database: DatabaseState) -> None:
    for kind in OVER_REST:
        path = f"{kind.path}/{fully(kind, run)['id']}"
        got = api.get(path)
        with database.unchanged():
            as_bytes = api.post(path, content=got.content, headers={"Content-Type": "application/json"})
            as_object = api.post(path, got.json(), headers={"If-Match": got.headers["etag"]})
        for answer in (as_bytes, as_object):
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (200, got.content, got.headers["etag"])


def test_a_record_of_a_list_with_all_that_it_can_include_can_be_posted_back(
    api: ApiClient, run: Run, database: DatabaseState
) -> None:
    trees = [kind for kind in OVER_REST if kind.tree]
    assert len(trees) > 1
    for kind in trees:
        fully(kind, run)
        records = api.get(f"{kind.path}?include=childCount").json()["results"]
        assert all("childCount" in record for record in records)
        with database.unchanged():
            answers = [api.post(f"{kind.path}/{record['id']}", record) for record in records]
        assert [answer.status_code for answer in answers] == [200] * len(records)


def test_each_record_of_a_list_is_the_record_that_get_answers(api: ApiClient, run: Run) -> None:
    visited = 0
    for kind in KINDS:
        if not (kind.serves(LIST) and kind.serves(GET)):
            continue
        fully(kind, run)
        for record in api.get(f"{kind.path}?perPage=1000").json()["results"]:
            assert api.get(f"{kind.path}/{record['id']}").json() == record
            assert list(record) == [field.name for field in kind.response_fields]
            visited += 1
    assert visited >= 3 + 4


@each_kind
def test_every_field_that_is_taken_or_answered_is_explained(kind: NodeKind) -> None:
    for field in (*kind.accepted, *kind.response_fields):
        assert len(field.doc) > 10, field.name
        assert field.schema()["description"] == field.doc
    assert {f.name for f in kind.response_fields} >= {"id", "name", "url", "createdAt", "updatedAt"}


def another(field: Field, made: dict[str, Any]) -> Any:
    """Return a value of a field that differs from the one it has."""
    now = made.get(field.name)
    candidates = (field.example, "Another", 0 if now else 1, "https://another.example/", None)
    for value in candidates:
        try:
            if field.type.parse(value) != now and value is not None:
                return value
        except Exception:  # noqa: S112, BLE001  # a value that the type does not take is not a candidate
            continue
    raise AssertionError(f"no other value for {field.name}")


def test_every_older_name_means_the_same_over_rest(api: ApiClient, run: Run, database: DatabaseState) -> None:
    visited = 0
    for kind in OVER_REST:
        for field in (f for f in kind.accepted if f.also and not f.read_only):
            for alias in field.also:
                made = run(kind.operation("create"), name="Plain")
                twin = run(kind.operation("create"), name="Plain")
                value = twin["id"] if field.name == "parentId" else another(field, made)
                with database.new_events() as new_events:
                    answer = api.post(f"{kind.path}/{made['id']}", {alias: value})
                assert answer.status_code == 200, answer.text
                (event,) = new_events()
                assert field.name in event["changed"]
                assert alias not in answer.json()
                with database.unchanged():
                    assert set(read_field_errors(api.post(f"{kind.path}/{made['id']}", {alias: value, field.name: value}))) == {
                        field.name
                    }
                visited += 1
    assert visited == sum(len(f.also) for kind in OVER_REST for f in kind.accepted if not f.read_only) >= 19


def test_every_misspelt_field_is_answered_with_the_right_one(api: ApiClient, run: Run, database: DatabaseState) -> None:
    for kind in OVER_REST:
        number = run(kind.operation("create"), name="Plain")["id"]
        with database.unchanged():
            for field in (f for f in kind.accepted if not f.read_only and len(f.name) > 4):
                wrong = field.name[:-2] + field.name[-1] + field.name[-2]
                if wrong == field.name:
                    continue
                answer = api.post(f"{kind.path}/{number}", {wrong: 1})
                assert read_field_errors(answer) == {wrong: "UNKNOWN_PARAMETER"}
                assert f"Did you mean {field.name}?" in answer.json()["detail"]
