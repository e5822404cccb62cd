"""Sweeps over every operation that a key can be granted, at each bound: what it refuses, and that nothing is left behind."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.api_client import ApiClient
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.sweeps.grantable import create_target, given_to, grantable_routes, needed_by
from trellis.compose import catalogue_of
from trellis.core.operation import Operation
from trellis.core.verbs import Body
from trellis.errors import Refused
from trellis.http.routes import Route
from trellis.kinds import KINDS

CATALOGUE: Final = catalogue_of(KINDS)
ROUTES: Final = grantable_routes(CATALOGUE)


def _keeps(operation: Operation) -> bool:
    return operation.writes and not operation.is_plan


def _ask(api: ApiClient, route: Route, target: int | None, key: str, **query: Any) -> Any:
    more: dict[str, Any] = {"params": needed_by(route.operation) | query}
    if route.verb.body in {Body.NEW, Body.CHANGES}:
        more["json"] = given_to(route.operation, f"By {route.operation.name}")
    return api(route.method, route.path.replace("{id}", str(target)), key=key, **more)


def _walk(run: Run, key: MakeKey, bound: dict[str, Any]) -> Iterator[tuple[Route, int | None, str]]:
    for route in ROUTES:
        name = route.operation.name
        target = create_target(CATALOGUE, route.operation, run, f"For {name}")
        grants = {name, "groups.list", "forums.list"} if name.startswith("structure.") else {name}
        yield route, target, key(grants, bounds={name: bound})


def test_each_can_be_used_up(run: Run, key: MakeKey, api: ApiClient, database: DatabaseState) -> None:
    for route, target, text in _walk(run, key, {"perDay": 0}):
        with database.unchanged():
            answer = _ask(api, route, target, text)
        assert (answer.status_code, answer.json()["errorMessage"]) == (429, "GRANT_USED_UP"), route.operation.name
        assert int(answer.headers["retry-after"]) > 0


def test_each_that_keeps_something_can_be_held_back(run: Run, key: MakeKey, api: ApiClient, database: DatabaseState) -> None:
    for route in ROUTES:
        name = route.operation.name
        target = create_target(CATALOGUE, route.operation, run, f"For {name}")
        if not _keeps(route.operation):  # what can be proposed is in test_proposals
            with pytest.raises(Refused, match="nothing to approve"):
                key({name}, bounds={name: {"level": "propose"}})
            continue
        text = key({name, "groups.list"}, bounds={name: {"dryRunOnly": True}})
        with database.unchanged():
            answer = _ask(api, route, target, text)
            assert (answer.status_code, answer.json()["errorMessage"]) == (403, "DRY_RUN_ONLY"), name
            assert _ask(api, route, target, text, dryRun="1").json().get("errorMessage") != "DRY_RUN_ONLY", name


def test_each_that_is_about_nodes_can_be_limited_to_some(run: Run, key: MakeKey, api: ApiClient, database: DatabaseState) -> None:
    for route in ROUTES:
        operation = route.operation
        resource = operation.resource if operation.kind is not None else "forums"
        bound = {"under": [f"{resource}:999999"]}
        target = create_target(CATALOGUE, operation, run, f"For {operation.name}")
        if not operation.can_be_limited:
            with pytest.raises(Refused, match="not about nodes"):
                key({operation.name}, bounds={operation.name: bound})
            continue
        text = key({operation.name, "forums.list", "groups.list"}, bounds={operation.name: bound})
        with database.unchanged():
            answer = _ask(api, route, target, text)
        told = answer.json()
        if answer.status_code == 200:
            assert told.get("results", []) == [], operation.name
            assert not any(told.get(kind.name) for kind in KINDS), operation.name
        else:
            assert told["errorMessage"] in {"INVALID_ID", "OUT_OF_BOUNDS", "INVALID_DOCUMENT"}, (operation.name, told)
