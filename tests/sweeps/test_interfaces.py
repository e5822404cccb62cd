"""Sweeps over every interface: each operation is in the OpenAPI document, the reference and the command line, and does the same."""

from typing import Any, Final

import orjson
import pytest
from typer.testing import CliRunner

from tests.agent_client import AgentClient
from tests.api_client import ApiClient
from tests.community import CONTRACT
from tests.database_state import DatabaseState, Event
from tests.fixture_types import Run
from tests.service_process import environment
from tests.sweeps.grantable import create_target, given_to, grantable_routes
from trellis.cli.app import app
from trellis.compose import catalogue_of
from trellis.core.operation import Operation
from trellis.core.verbs import LIST, RESTORE, Body
from trellis.http.routes import Route, build_routes
from trellis.kinds import KINDS
from trellis.settings import Settings

CATALOGUE: Final = catalogue_of(KINDS)
ROUTES: Final = grantable_routes(CATALOGUE)
SERVED: Final = [route for route in ROUTES if route.operation.path is not None]  # under their own names
OWN: Final = {"maker", "id", "url", "position", "path", "createdAt", "updatedAt", "secret"}  # what differs between twins


def test_there_are_the_nineteen_of_the_contract_and_ours() -> None:
    assert len(ROUTES) == len(CATALOGUE.grantable)
    assert {route.operation.name for route in ROUTES} > set(CONTRACT)


def test_none_takes_a_parameter_that_would_be_taken_for_a_key_in_the_address() -> None:
    served = [operation for operation in CATALOGUE.values() if operation.path is not None]
    assert not [operation.name for operation in served for field in operation.takes if "key" in (field.name, *field.also)]


def test_each_stands_in_the_openapi_document_where_it_is_served(api: ApiClient) -> None:
    document = api.get("/openapi.json", key=None).json()
    told = {
        (operation["operationId"], method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if isinstance(operation, dict) and "operationId" in operation
    }
    assert told == {(route.operation.name, route.method, route.path) for route in build_routes(CATALOGUE)}
    for route in SERVED:
        written = document["paths"][route.path][route.method.lower()]
        assert written["x-required-grant"] == route.operation.name
        assert {str(route.status), "401", "403", "429"} <= set(written["responses"])
        assert written.get("security", document["security"])


def test_each_stands_in_the_reference_with_an_example(api: ApiClient) -> None:
    pages = {route.operation.resource: "" for route in SERVED}
    for name in pages:
        pages[name] = api.get(f"/docs/{name}", key=None).text
    for route in SERVED:
        page = pages[route.operation.resource]
        assert f'id="{route.operation.name}"' in page
        assert all(part in page for part in route.path.split("{id}"))


def test_each_is_listed_by_trellis_routes() -> None:
    result = CliRunner().invoke(app, ["routes", "--json"])
    assert result.exit_code == 0, result.output
    listed = {row["operation"]: (row["method"], row["path"], row["access"]) for row in orjson.loads(result.stdout)}
    assert {name: row for name, row in listed.items() if row[2] == "granted" and row[1] is not None} == {
        route.operation.name: (route.method, route.path, "granted") for route in SERVED
    }


def test_each_is_a_tool_but_what_shows_a_secret(api: ApiClient) -> None:
    listed = {tool["name"] for tool in AgentClient(api).tools(key=api.key)}
    assert {route.operation.name for route in SERVED if not route.operation.shows_secret} - {"structure.apply"} <= listed
    assert not {route.operation.name for route in SERVED if route.operation.shows_secret} & listed


def sent_to(operation: Operation) -> dict[str, Any]:
    """Return what is sent to one that needs something, such as a create or an update."""
    if operation.verb is None or operation.verb.body not in {Body.NEW, Body.CHANGES}:
        return {}
    return given_to(operation, "By any door")


def over_rest(api: ApiClient, route: Route, target: int | None) -> Any:
    sent = sent_to(route.operation)
    body = {"json": sent} if sent else {}
    answer = api(route.method, route.path.replace("{id}", str(target)), **body)
    assert answer.status_code == route.status, answer.text
    return answer.json()


def at_the_terminal(settings: Settings, operation: Operation, target: int | None) -> Any:
    sent = [f"{name}:={orjson.dumps(value).decode()}" for name, value in sent_to(operation).items()]
    parameters = [*([f"id={target}"] if target else []), *sent]
    result = CliRunner(env=environment(settings)).invoke(app, ["run", operation.name, *parameters, "--json"])
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


def alike(record: Any) -> Any:
    return {name: value for name, value in record.items() if name not in OWN} if isinstance(record, dict) else record


def essence(event: Event) -> Event:
    """Return what an event says apart from who, when, and which of two twins."""
    passing = {"seq", "at", "actor", "requestId", "resourceId", "undoes"}
    return {name: alike(value) if name in {"before", "after"} else value for name, value in event.items() if name not in passing}


# Those that run others do something else when they are sent again: see tests/core/structure. By the clock of the terminal, which is
# the real one, what these tests propose has expired, and the answers of `access` tell the time.
ALONE: Final = [
    route for route in ROUTES if not (route.operation.runs_others or route.operation.resource in {"access", "proposals"})
]


@pytest.mark.parametrize("route", ALONE, ids=lambda route: route.operation.name)
def test_each_does_the_same_at_the_terminal_and_leaves_the_same_event(
    api: ApiClient, run: Run, database: DatabaseState, settings: Settings, route: Route
) -> None:
    operation = route.operation
    with database.new_events() as new_events:
        twins = create_target(CATALOGUE, operation, run), create_target(CATALOGUE, operation, run)
    made = len(new_events())
    with database.new_events() as new_events:
        one, other = over_rest(api, route, twins[0]), at_the_terminal(settings, operation, twins[1])
    if operation.verb is LIST:
        assert one == other
    if operation.verb is RESTORE:
        one, other = one["record"], other["record"]
    assert alike(one) == alike(other)
    events = new_events()
    assert len(events) == (2 if operation.writes else 0), made
    if operation.writes:
        assert essence(events[0]) == essence(events[1])
        assert [event["actor"]["type"] for event in events] == ["key", "terminal"]
        assert events[0]["requestId"]
        assert events[1]["requestId"]
