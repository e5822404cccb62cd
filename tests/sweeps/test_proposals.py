"""A sweep at level *propose*: what is proposed changes nothing, and approved it leaves exactly what the call itself leaves."""

from typing import Any, Final

import httpx
import pytest

from tests.api_client import ApiClient, read_refusal
from tests.database_state import DatabaseState, Event, Rows
from tests.fixture_types import MakeKey, Run
from tests.sweeps.grantable import create_target, given_to, grantable_routes
from trellis.compose import catalogue_of
from trellis.core.verbs import RESTORE, Body
from trellis.http.routes import Route
from trellis.kinds import KINDS

CATALOGUE: Final = catalogue_of(KINDS)
ROUTES: Final = [route for route in grantable_routes(CATALOGUE) if route.operation.is_proposable]
OWN: Final = frozenset({"proposals", "events"})  # what a proposal is written to
# What differs between two runs of the same call, each about a record of its own.
PASSING: Final = frozenset({"seq", "at", "actor", "requestId", "resourceId", "undoes", "changeSet", "proposal", "approvedBy"})
DIFFERS: Final = frozenset(
    {"maker", "id", "url", "position", "path", "createdAt", "updatedAt", "about", "secret", "plan", "revision"}
)


def ask(api: ApiClient, route: Route, target: int | None, key: str, **more: Any) -> httpx.Response:
    """Call an operation as simply as it can be."""
    if route.verb.body in {Body.NEW, Body.CHANGES}:
        more["json"] = given_to(route.operation, "By its key")
    return api(route.method, route.path.replace("{id}", str(target)), key=key, **more)


def rows_beside(rows: Rows) -> Rows:
    """Return all rows but those that a proposal is written to."""
    found = {table: some for table, some in rows.items() if table not in OWN}
    found["counters"] = [row for row in found["counters"] if row["name"] not in OWN | {"data version"}]
    return found


def essence(event: Event) -> Any:
    """Return what an event says apart from who, when, and about which of two twins."""
    return without({name: value for name, value in event.items() if name not in PASSING})


def without(value: Any) -> Any:
    """Return a value without what differs between twins, however deep."""
    if isinstance(value, dict):
        return {name: without(one) for name, one in value.items() if name not in DIFFERS}
    return [without(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation.name)
def test_what_is_proposed_does_what_the_call_does_once_it_is_approved(
    route: Route, api: ApiClient, run: Run, key: MakeKey, database: DatabaseState
) -> None:
    name = route.operation.name
    grants = [one.name for one in CATALOGUE.grantable]
    agent = key(grants, name="Twin", rateLimit=0, bounds={name: {"level": "propose"}})
    alone = key(grants, name="Twin", rateLimit=0)
    twins = create_target(CATALOGUE, route.operation, run), create_target(CATALOGUE, route.operation, run)
    before = rows_beside(database.rows())
    with database.new_events() as events:
        dry = ask(api, route, twins[0], agent, params={"dryRun": "1"})
        proposed = ask(api, route, twins[0], agent)
    assert (dry.status_code, proposed.status_code) == (200, 202), proposed.text
    proposal = proposed.json()
    assert proposed.headers["location"].endswith(f"/api/core/proposals/{proposal['id']}")
    assert (proposal["operation"], proposal["target"], proposal["state"]) == (name, twins[0], "open")
    assert [event["type"] for event in events()] == ["proposal.created"]
    assert rows_beside(database.rows()) == before
    assert sum(proposal["counts"].values()) > 0

    with database.new_events() as events:
        approved = api.post(f"/core/proposals/{proposal['id']}/approve")
    assert approved.status_code == 200, approved.text
    *done, decided = events()
    assert decided["type"] == "proposal.approved"
    own = [event for event in done if event["proposal"] == proposal["id"]]
    assert own[-1]["approvedBy"]["name"] == "Everything"
    assert {event["actor"]["name"] for event in own} == {"Twin"}

    with database.new_events() as events:
        direct = ask(api, route, twins[1], alone)
    assert direct.status_code == route.status, direct.text
    assert [event["operation"] for event in own][-1:] == [name] or route.operation.runs_others
    if route.operation.kind is not None or route.operation.resource == "webhooks":
        assert [essence(event) for event in own] == [essence(event) for event in events()]
    if route.verb is not RESTORE and direct.json() is not None and route.operation.kind is not None:
        assert without(approved.json()["result"]) == without(direct.json())


def test_a_decision_needs_its_grant_and_the_proposals_of_others_are_not_told(
    api: ApiClient, run: Run, key: MakeKey, database: DatabaseState
) -> None:
    run("proposals.create", operation="forums.create", input={"name": "Silverbirch"})
    others = [one.name for one in CATALOGUE.grantable if one.name not in {"proposals.approve", "proposals.reject"}]
    stranger = key([name for name in others if name != "events.list"], rateLimit=0)
    with database.unchanged():
        assert api.get("/core/proposals", key=stranger).json()["totalResults"] == 0
        told = [api.get(f"/core/proposals/{number}", key=stranger) for number in (1, 999)]
        withdrawn = [api.post(f"/core/proposals/{number}/withdraw", key=stranger) for number in (1, 999)]
        for one, nobody in (told, withdrawn):
            document = read_refusal(one, 404, "INVALID_ID")
            assert {**document, "requestId": ""} == {**nobody.json(), "requestId": "", "detail": document["detail"]}
            assert "Silverbirch" not in one.text
        for verb in ("approve", "reject"):
            refused = api.post(f"/core/proposals/1/{verb}", {"reason": "No."}, key=stranger)
            assert read_refusal(refused, 403, "NO_PERMISSION")["missingOperation"] == f"proposals.{verb}"
