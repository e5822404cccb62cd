"""Permissions that a form sends under a parent: it cannot hold an empty list, so that it has to name every option."""

from collections.abc import Callable
from itertools import product
from typing import Any, Final

import pytest

from tests.api_client import ApiClient, read_field_errors
from tests.community import MEMBERS
from tests.database_state import DatabaseState
from trellis.core.kind import NodeKind
from trellis.kinds import KINDS

NESTED: Final = [kind for kind in KINDS if kind.tree and kind.options]
each_kind = pytest.mark.parametrize("kind", NESTED, ids=lambda kind: kind.name)
ENCODINGS: Final[list[Callable[[dict[str, Any]], dict[str, Any]]]] = [  # a form, one in parts, and the query
    lambda pairs: {"data": pairs},
    lambda pairs: {"files": {name: (None, str(value)) for name, value in pairs.items()}},
    lambda pairs: {"params": pairs},
]


@pytest.fixture
def parent(api: ApiClient, kind: NodeKind) -> int:
    """A node that everybody may do everything in."""
    return int(
        api.post(kind.path, {"name": "Open", "externalId": "open", "permissions": dict.fromkeys(kind.options, "*")}).json()["id"]
    )


def name_all(kind: NodeKind, **but: Any) -> dict[str, Any]:
    return {f"permissions[{option}]": but.get(option, "*") for option in kind.options}


@each_kind
def test_options_that_are_left_out_are_refused_by_name(
    api: ApiClient, database: DatabaseState, kind: NodeKind, parent: int
) -> None:
    left_out = {f"permissions.{option}": "MISSING_VALUE" for option in kind.options if option != "view"}
    with database.unchanged():
        for encode, by in product(ENCODINGS, ("parentId", "parent", "parentExternalId")):
            form = {"name": "Closed", by: "open" if by == "parentExternalId" else parent, "permissions[view]": "*"}
            answer = api.post(kind.path, **encode(form))
            assert (answer.status_code, read_field_errors(answer)) == (400, left_out)
            assert "send permissions[read]= for nobody, or inheritPermissions=1 for the parent's value" in answer.text


@each_kind
def test_an_empty_value_is_nobody(api: ApiClient, kind: NodeKind, parent: int) -> None:
    for encode in ENCODINGS:
        made = api.post(kind.path, **encode({"name": "Closed", "parentId": parent, **name_all(kind, read="", add=MEMBERS)}))
        assert made.status_code == 201
        assert made.json()["permissions"] == dict.fromkeys(kind.options, "*") | {"read": [], "add": [MEMBERS]}


@each_kind
def test_a_list_that_names_no_groups_is_refused_with_what_to_send(api: ApiClient, database: DatabaseState, kind: NodeKind) -> None:
    sent = "In a form, send permissions[view]=* for every group, permissions[view][]=ID for each of some groups, or "
    for who in ("", "*", "3,4"):
        with database.unchanged():
            for encode in ENCODINGS:
                answer = api.post(kind.path, **encode({"name": "Closed", "permissions[view][]": who}))
                assert (answer.status_code, read_field_errors(answer)) == (400, {"permissions": "INVALID_VALUE"})
                assert answer.json()["detail"].endswith(f"{sent}permissions[view]= for nobody.")
        made = api.post(kind.path, json={"name": "Closed", "permissions": {"view": [who]}})
        assert "In a form" not in made.text


@each_kind
def test_the_parents_values_can_be_asked_for(api: ApiClient, kind: NodeKind, parent: int) -> None:
    form = {"name": "Open too", "parentId": parent, "permissions[read]": "", "inheritPermissions": "1"}
    for encode in ENCODINGS:
        made = api.post(kind.path, **encode(form))
        assert made.status_code == 201
        assert made.json()["permissions"] == dict.fromkeys(kind.options, "*") | {"read": []}
        refused = api.post(kind.path, **encode(form | {"inheritPermissions": "0"}))
        assert refused.status_code == 400


@each_kind
def test_where_nothing_is_inherited_by_mistake_options_may_be_left_out(api: ApiClient, kind: NodeKind, parent: int) -> None:
    """A form without permissions, at the top level, or that copies them; JSON, which can say `[]`; and an update."""
    everybody = dict.fromkeys(kind.options, "*")
    nobody: dict[str, Any] = {option: [] for option in kind.options}
    for sent, wanted in (
        ({"data": {"name": "A", "parentId": parent}}, everybody),
        ({"data": {"name": "B", "permissions[view]": "*"}}, nobody | {"view": "*"}),
        ({"data": {"name": "C", "parentId": "", "permissions[view]": "*"}}, nobody | {"view": "*"}),
        (
            {"data": {"name": "D", "parentId": parent, "copyPermissionsFrom": parent, "permissions[read]": ""}},
            everybody | {"read": []},
        ),
        ({"data": {"name": "E", "parentId": parent, "permissions": '{"read": []}'}}, everybody | {"read": []}),
        ({"data": {"json": f'{{"name": "F", "parentId": {parent}, "permissions": {{"read": []}}}}'}}, everybody | {"read": []}),
        ({"json": {"name": "G", "parentId": parent, "permissions": {"read": []}}}, everybody | {"read": []}),
    ):
        made = api("POST", kind.path, **sent)
        assert (made.status_code, made.json().get("permissions")) == (201, wanted), sent
    last = api.get(kind.path, params={"name": "G"}).json()["results"][0]["id"]
    changed = api.post(f"{kind.path}/{last}", data={"permissions[add]": "", "inheritPermissions": "1"})
    assert changed.json()["permissions"] == everybody | {"read": [], "add": []}


@each_kind
def test_a_put_that_creates_asks_for_every_option_and_one_that_changes_does_not(
    api: ApiClient, database: DatabaseState, kind: NodeKind, parent: int
) -> None:
    form = {"name": "Closed", "parentId": str(parent), "permissions[view]": "*"}
    path = f"{kind.path}/external/closed"
    with database.unchanged():
        assert "permissions.read" in read_field_errors(api("PUT", path, data=form))
    assert api("PUT", path, data=form | name_all(kind, read="")).status_code == 201
    changed = api("PUT", path, data={"permissions[add]": ""})
    assert (changed.status_code, changed.json()["permissions"]["read"], changed.json()["permissions"]["add"]) == (200, [], [])


def test_kinds_without_a_parent_or_permissions_do_not_know_it(api: ApiClient) -> None:
    answer = api.post("/calendar/calendar", data={"name": "Meetups", "permissions[view]": "*", "inheritPermissions": "1"})
    assert read_field_errors(answer) == {"inheritPermissions": "UNKNOWN_PARAMETER"}
    assert api.post("/calendar/calendar", data={"name": "Meetups", "permissions[view]": "*"}).status_code == 201
