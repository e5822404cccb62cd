"""Values that no field allows, however they are sent: refused as the contract says, nothing changed, the next request served."""

from typing import Any, Final

import pytest

from tests.api_client import ApiClient, read_field_errors, read_refusal
from tests.community import Community
from tests.database_state import DatabaseState
from trellis.core.verbs import CREATE
from trellis.kinds import KINDS

MADE_OVER_REST: Final = tuple(kind for kind in KINDS if kind.serves(CREATE))
HUGE: Final = int("9" * 400)
WEIRD: Final[tuple[Any, ...]] = (
    "\x00",
    "a\x00b",
    "\x1b[31m",
    "\x9f",
    HUGE,
    -HUGE,
    -1,
    -(2**63) - 1,
    2**63,
    2**64,
    1e300,
    -0.5,
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    [None],
    {"a": {"b": {"c": {}}}},
    "x" * 200_000,
)
MEANT: Final[tuple[tuple[str, Any], ...]] = (("parentId", -1), ("permissions", {}))  # the top level; no option changed


def test_no_field_takes_what_is_not_meant_for_it(
    engine: str, api: ApiClient, community: Community, database: DatabaseState
) -> None:
    """Every writable field of every kind that REST creates with every weird value, to make a node or to change one by turns.

    A field gets half of the values on the one engine, and the others on the other one.
    """
    numbers = {kind.name: api.post(kind.path, {"name": "Plain"}).json()["id"] for kind in MADE_OVER_REST}
    visited = 0
    with database.unchanged():
        for kind in MADE_OVER_REST:
            paths = (kind.path, f"{kind.path}/{numbers[kind.name]}")
            for at, field in enumerate(field for field in kind.accepted if not field.read_only):
                for number, value in enumerate(WEIRD[(at + (engine == "sqlite")) % 2 :: 2]):
                    path = paths[(at + number) % 2]  # both read a field in the same way
                    answer = api.post(path, {"name": "Odd", field.name: value, "dryRun": True})
                    visited += 1
                    if (field.name, value) in MEANT:
                        assert answer.status_code == 200
                    else:
                        faults = {name.partition(".")[0] for name in read_field_errors(answer)}
                        assert faults == {field.name}, (path, field.name, value)
                    assert len(answer.content) < 3000, "an answer is short, whatever was sent"
    assert visited > 3 * 5 * len(WEIRD)


@pytest.mark.either_engine
def test_no_name_of_a_parameter_or_option_does_harm(api: ApiClient, community: Community, database: DatabaseState) -> None:
    names = [
        "\x00",
        "__proto__",
        "constructor",
        "",
        " ",
        "id[",
        "x" * 100_000,
        "\u202e",
        "permissions.view",
        "a'b\"c<d>",
        "é\U0001f30d",
    ]
    with database.unchanged():
        for name in names:
            for body in ({name: 1}, {"permissions": {name: "*"}}):
                assert set(read_field_errors(api.post(f"/forums/forums/{community.news}", body)).values()) == {
                    "UNKNOWN_PARAMETER"
                }, name[:30]
    assert api.post("/forums/forums", {"name": "Next"}).status_code == 201


@pytest.mark.either_engine
def test_of_very_many_unknown_names_a_few_are_told_and_the_others_counted(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    names = {f"nam{number}": "1" for number in range(1000)}
    path = f"/forums/forums/{community.news}"
    with database.unchanged():
        answers = [
            api.post(path, names),
            api.post(path, data=names),
            api.post(path, params=names),
            api.get("/forums/forums", params=names),
        ]
        for answer in answers:
            assert len(read_field_errors(answer)) == 20
            assert answer.json()["moreErrors"] == 980
            assert answer.json()["detail"].startswith("1,000 fields are invalid: ")
            assert answer.text.count("There is no parameter 'nam4'. ") == 2, "in the detail and in the faults"
            assert answer.text.count("There is no parameter 'nam5'. ") == 1, "only in the detail, before the next sentence"
            assert len(answer.content) < 8_000


@pytest.mark.either_engine
def test_an_object_with_more_names_than_anybody_needs_is_refused_without_reading_them(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    names = ",".join(f'"n{number}": 1' for number in [*range(20_000), 7])
    with database.unchanged():
        for body in (f"{{{names}}}", f'{{"permissions": {{{names}}}}}', f'{{"name": [{{{names}}}]}}'):
            answer = api.post(f"/forums/forums/{community.news}", content=body, headers={"Content-Type": "application/json"})
            document = read_refusal(answer, 400, "MALFORMED_REQUEST")
            assert "an object has 20,001 names; 1,000 are allowed" in document["detail"]


@pytest.mark.either_engine
@pytest.mark.parametrize("depth", [65, 300, 900])
def test_a_body_nested_too_deeply_is_refused_with_an_idempotency_key_too(
    api: ApiClient, database: DatabaseState, depth: int
) -> None:
    with database.unchanged():
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            body = f'{{"name": {opening * depth}1{closing * depth}}}'
            headers = {"Content-Type": "application/json", "Idempotency-Key": "deep"}
            read_refusal(api.post("/forums/forums", content=body, headers=headers), 400, "MALFORMED_REQUEST")
