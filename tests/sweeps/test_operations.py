"""Sweeps over every operation that a key can be granted: who may run it, what it leaves, in each dialect and over MCP.

No kind is named here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import httpx
import orjson
import pytest

from tests.agent_client import AgentClient
from tests.api_client import CLIENT_ADDRESS, ApiClient, read_refusal
from tests.community import CONTRACT
from tests.database_state import DatabaseState
from tests.each_engine import on_engines
from tests.fixture_types import Clock, MakeKey, Run
from tests.sweeps.grantable import create_target, given_to, grantable_routes, needed_by
from trellis.compose import catalogue_of
from trellis.core.dialect import DIALECTS, INVISION, TRELLIS
from trellis.core.gate import Gate
from trellis.core.operation import Operation
from trellis.core.verbs import DELETE, RESTORE, Body
from trellis.http.routes import Route
from trellis.kinds import KINDS
from trellis.rest.dialect import TRANSLATORS

CATALOGUE: Final = catalogue_of(KINDS)
NAMES: Final = frozenset(operation.name for operation in CATALOGUE.grantable)
ROUTES: Final = grantable_routes(CATALOGUE)
MCP: Final = "mcp"
DOORS: Final = (*sorted(DIALECTS), MCP)  # the dialects of keys over REST, and the tools

# Our own dialect on both engines; what translates has no part in what a database does.
at_each_door = on_engines(["door"], [("sqlite", TRELLIS), ("postgresql", TRELLIS), ("sqlite", INVISION), ("postgresql", MCP)])


class Sweep:
    """Walks over all operations; a walk that does not meet each that can be granted, those of the contract among them, fails."""

    def __init__(self, run: Run, api: ApiClient, door: str) -> None:
        self._run = run
        self._api = api
        self._agent = AgentClient(api) if door == MCP else None
        self.is_first = door == TRELLIS
        self._translator = TRANSLATORS.get(door)

    def __iter__(self) -> Iterator[Route]:
        assert len(ROUTES) == len(NAMES)
        assert set(CONTRACT) < NAMES
        yield from (route for route in ROUTES if self._agent is None or not route.operation.shows_secret)

    def with_targets(self) -> list[tuple[Route, int | None]]:
        """Make a record for each operation that is about one: before any is refused, so that all can be seen to change nothing."""
        return [(route, self.target(route.operation)) for route in self]

    def target(self, operation: Operation) -> int | None:
        """Make a record for an operation that is about one."""
        return create_target(CATALOGUE, operation, self._run, f"For {operation.name}")

    def ask(self, route: Route, target: int | None, *, key: str | None, dry: bool = False, **more: Any) -> httpx.Response:
        """Run an operation, as simply as it can be."""
        if self._agent is not None:
            return self._call(self._agent, route, target, key=key, dry=dry, **more)
        path = route.path.replace("{id}", str(target))
        more["params"] = needed_by(route.operation) | dict(more.get("params", {})) | ({"dryRun": "1"} if dry else {})
        if route.verb.body in {Body.NEW, Body.CHANGES}:
            more["json"] = given_to(route.operation, f"By {route.operation.name}")
        return self._api(route.method, path, key=key, **more)

    def _call(
        self,
        agent: AgentClient,
        route: Route,
        target: int | None,
        *,
        key: str | None,
        dry: bool,
        params: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> httpx.Response:
        """Call a tool, and show what it returns as REST does."""
        operation = route.operation
        arguments: dict[str, Any] = {**({} if target is None else {"id": target}), **needed_by(operation), **params} | (
            {"dryRun": True} if dry else {}
        )
        if route.verb.body in {Body.NEW, Body.CHANGES}:
            arguments |= given_to(operation, f"By {operation.name}")
        answer = agent.send("tools/call", {"name": find_tool(operation), "arguments": arguments}, key=key, **more)
        told = answer.json()
        if "error" in told:
            return as_over_rest(answer, answer.status_code, told["error"]["data"])
        result = told["result"]
        if result.get("isError"):
            problem = orjson.loads(result["content"][0]["text"])
            assert result.get("structuredContent", problem) == problem
            return as_over_rest(answer, problem["status"], problem)
        was_dry = result["_meta"].get("trellis/dryRun", False)
        headers = {"dry-run": "true"} if was_dry else {}
        headers |= {"idempotent-replayed": "true"} if result["_meta"].get("trellis/replayed") else {}
        value = orjson.loads(result["content"][0]["text"])
        assert result.get("structuredContent") == (value if isinstance(value, dict) else None)
        return httpx.Response(200 if was_dry else route.status, headers=headers, json=value)

    def is_in_dialect(self, operation: Operation) -> bool:
        """Return whether an operation is answered in another dialect than ours."""
        return self._translator is not None and self._translator.covers(operation)

    def read_refusal(self, operation: Operation, answer: httpx.Response, status: int, message: str) -> dict[str, Any]:
        """Check that an answer is a refusal in the dialect of the key, and return its document."""
        if self._translator is None or not self._translator.covers(operation):
            return read_refusal(answer, status, message)
        dialect = self._translator.dialect
        status = dialect.statuses.get(message, status)
        assert (answer.status_code, answer.headers["content-type"]) == (status, dialect.error_type), answer.text
        document: dict[str, Any] = answer.json()
        assert list(document) == ["errorCode", "errorMessage"]
        assert document["errorMessage"] == message
        return document

    def find_code(self, code: str) -> str:
        """Return what the dialect of the key has for one of our error codes."""
        return code if self._translator is None else self._translator.find_code(code)


def is_alike(one: Operation, other: Operation) -> bool:
    """Return whether two operations are on the same resource, or do the same to two."""
    return one.resource == other.resource or one.verb is other.verb


def find_tool(operation: Operation) -> str:
    """Return the name of the tool that runs an operation: its own, or that of the one that forks to it."""
    return next((one.name for one in CATALOGUE.values() if one.fork and operation.name in one.fork.to), operation.name)


def as_over_rest(answer: httpx.Response, status: int, problem: dict[str, Any]) -> httpx.Response:
    """Return a refusal over MCP as it is over REST."""
    kept = {name: value for name, value in answer.headers.items() if name not in {"content-type", "content-length"}}
    return httpx.Response(status, headers={**kept, "content-type": "application/problem+json"}, content=orjson.dumps(problem))


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def key(key: MakeKey, door: str) -> MakeKey:
    """Make keys that have the dialect."""
    return lambda grants=(), /, **settings: key(grants, **{"dialect": door if door in DIALECTS else TRELLIS, **settings})


@pytest.fixture
def sweep(run: Run, api: ApiClient, door: str) -> Sweep:
    return Sweep(run, api, door)


def key_id(run: Run) -> int:
    """Return the id of the youngest key."""
    listed = run("keys.list", perPage=1000)["results"]
    return int(listed[-1]["id"])


def test_every_granted_operation_can_be_reached_over_rest() -> None:
    assert {route.operation.name for route in ROUTES} == NAMES


@pytest.mark.parametrize("door", [TRELLIS, MCP])  # a dialect is that of a key
def test_without_a_key_none_of_them_runs(sweep: Sweep, database: DatabaseState) -> None:
    targets = sweep.with_targets()
    with database.unchanged():
        for number, (route, target) in enumerate(targets):
            read_refusal(sweep.ask(route, target, key=None, address=f"192.0.2.{number}"), 401, "NO_API_KEY")


@at_each_door
def test_with_all_grants_but_its_own_each_is_refused_by_name(sweep: Sweep, key: MakeKey, database: DatabaseState) -> None:
    targets = [(route, target, key(sorted(NAMES - {route.operation.name}))) for route, target in sweep.with_targets()]
    with database.unchanged():
        for route, target, others in targets:
            name = route.operation.name
            document = sweep.read_refusal(route.operation, sweep.ask(route, target, key=others), 403, "NO_PERMISSION")
            dry = sweep.read_refusal(route.operation, sweep.ask(route, target, key=others, dry=True), 403, "NO_PERMISSION")
            if not sweep.is_in_dialect(route.operation):
                assert document["missingOperation"] == dry["missingOperation"] == name
                assert name in document["detail"]


# The grants of a key are read alike on both engines, which the test above sees; which of them an operation asks for, no database
# decides. That each asks for its own, the test above sees in each dialect and over MCP; that no other is enough, all pairs of our
# own dialect do, and elsewhere those that are taken for each other most easily.
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_with_its_own_grant_alone_each_runs_and_no_other_does(sweep: Sweep, key: MakeKey) -> None:
    refused = [(other, sweep.target(other.operation) if other.operation.verb is RESTORE else 1) for other in sweep]
    for route in sweep:
        if route.operation.resource == "structure":  # needs the grants of what it lists and runs: see tests/core/structure
            continue
        own = key(route.operation.name)
        assert sweep.ask(route, sweep.target(route.operation), key=own).status_code == route.status
        for other, target in refused:
            if other is not route and (sweep.is_first or is_alike(other.operation, route.operation)):
                answer = sweep.ask(other, target, key=own)
                if route.operation.verb is other.operation.verb is RESTORE:  # nothing is told of events of other resources
                    sweep.read_refusal(other.operation, answer, 404, "INVALID_ID")
                else:
                    sweep.read_refusal(other.operation, answer, 403, "NO_PERMISSION")


@at_each_door
def test_with_an_expired_or_revoked_key_none_of_them_runs(
    sweep: Sweep, key: MakeKey, run: Run, clock: Any, database: DatabaseState
) -> None:
    expired = key("*", expires="1h")
    revoked = key("*")
    run("keys.revoke", key_id(run))
    clock.move(hours=1)
    targets = sweep.with_targets()
    with database.unchanged():
        for number, (route, target) in enumerate(targets):
            text = (expired, revoked)[number % 2]
            read_refusal(sweep.ask(route, target, key=text, address=f"192.0.2.{number}"), 401, "INVALID_API_KEY")


@at_each_door
def test_from_a_wrong_address_none_of_them_runs(sweep: Sweep, key: MakeKey, database: DatabaseState) -> None:
    bound = key("*", addresses=["192.0.2.0/24"])
    targets = sweep.with_targets()
    with database.unchanged():
        for route, target in targets:
            read_refusal(sweep.ask(route, target, key=bound, address=CLIENT_ADDRESS), 403, "IP_ADDRESS_NOT_ALLOWED")
    for route, target in targets:
        assert sweep.ask(route, target, key=bound, address="192.0.2.9").status_code == route.status


@at_each_door
def test_a_write_leaves_exactly_one_event_and_a_read_none(sweep: Sweep, key: MakeKey, run: Run, database: DatabaseState) -> None:
    text = key("*", name="Sweeper")
    number = key_id(run)
    writes = 0
    for route in sweep:
        operation, target = route.operation, sweep.target(route.operation)
        asked = {"X-Request-Id": f"sweep/{operation.name}", "X-Audit-Log-Reason": "Sweeping"}
        with database.new_events() as new_events:
            answer = sweep.ask(route, target, key=text, headers=asked)
        assert answer.status_code == route.status, answer.text
        if not operation.writes:
            assert new_events() == []
            continue
        writes += 1
        if operation.runs_others:  # these leave their own, in one change set
            assert len({event["changeSet"] for event in new_events()}) == route.verb.idempotency_key
            continue
        (event,) = new_events()
        assert event["operation"] == operation.name
        assert event["actor"] == {"type": "key", "id": number, "name": "Sweeper"}
        assert (event["requestId"], event["reason"]) == (asked["X-Request-Id"], "Sweeping")
        assert event["resource"] == operation.resource
        assert event["undoes"] == (target if operation.verb is RESTORE else None)
        record = answer.json()["record"]["id"] if operation.verb is RESTORE else _made(operation, answer) or target
        assert event["resourceId"] == record
        assert (event["before"] is None) == (operation.verb is RESTORE or _makes(operation))
        assert (event["after"] is None) == (operation.verb is DELETE)
    assert writes == sum(route.operation.writes for route in sweep)


def _makes(operation: Operation) -> bool:
    return operation.verb is not None and operation.verb.creates


def _made(operation: Operation, answer: httpx.Response) -> int | None:
    return int(answer.json()["id"]) if _makes(operation) else None


@at_each_door
def test_a_dry_write_and_a_refused_one_leave_nothing(sweep: Sweep, key: MakeKey, database: DatabaseState) -> None:
    text = key("*")
    targets = sweep.with_targets()
    with database.unchanged():
        for route, target in targets:
            if not route.operation.writes:
                continue
            dry = sweep.ask(route, target, key=text, dry=True)
            assert (dry.status_code, dry.headers["dry-run"]) == (200, "true")
            if sweep.is_in_dialect(route.operation):
                ignored = sweep.ask(route, target, key=text, params={"nonsense": "1", "dryRun": "1"})
                assert (ignored.status_code, ignored.headers["dry-run"]) == (200, "true")
            else:
                refused = sweep.ask(route, target, key=text, params={"nonsense": "1"})
                read_refusal(refused, 400, "UNKNOWN_PARAMETER")
            if route.operation.has_target:
                gone = sweep.read_refusal(route.operation, sweep.ask(route, 987_654, key=text), 404, "INVALID_ID")
                codes = {sweep.find_code(code) for message, code in route.operation.refusals if message == "INVALID_ID"}
                assert codes == {gone["errorCode"]}
                stale = sweep.ask(route, target, key=text, headers={"If-Match": '"of-another-version"'})
                sweep.read_refusal(route.operation, stale, 412, "PRECONDITION_FAILED")


@pytest.mark.parametrize("door", [TRELLIS])
def test_a_write_that_keeps_others_waiting_for_too_long_is_refused(
    sweep: Sweep, key: MakeKey, gate: Gate, database: DatabaseState
) -> None:
    text = key("*")
    targets = sweep.with_targets()
    gate.calls.environment = replace(gate.environment, job_timeout=0)
    with database.unchanged():
        for route, target in targets:
            if route.operation.writes:
                read_refusal(sweep.ask(route, target, key=text), 409, "TOO_LONG")


@pytest.mark.parametrize("door", [TRELLIS])
def test_no_record_of_a_node_gets_older_if_the_clock_is_set_back(
    sweep: Sweep, key: MakeKey, clock: Clock, database: DatabaseState
) -> None:
    clock.move(days=1)
    text = key("*")  # leaves an event for what follows to be after, also if that is about no record
    clock.move(days=-1)
    for route in sweep:
        if route.operation.kind is not None and route.operation.writes:
            clock.move(days=1)
            target = sweep.target(route.operation)
            clock.move(days=-1)
            with database.new_events() as new_events:
                assert sweep.ask(route, target, key=text).status_code == route.status
            after = new_events()[-1]["after"]
            assert after is None or after["updatedAt"] > clock.text, route.operation.name


@at_each_door
def test_a_create_that_is_repeated_is_answered_from_the_first(sweep: Sweep, key: MakeKey, database: DatabaseState) -> None:
    text = key("*")
    for route in sweep:
        if route.verb.idempotency_key and _makes(route.operation):
            target, token = sweep.target(route.operation), {"Idempotency-Key": f"sweep/{route.operation.name}"}
            first = sweep.ask(route, target, key=text, headers=token)
            with database.unchanged():
                again = sweep.ask(route, target, key=text, headers=token)
            assert (again.status_code, again.headers["idempotent-replayed"]) == (first.status_code, "true")
            assert {**again.json(), "secret": None} == {**first.json(), "secret": None}


@pytest.mark.parametrize("door", [TRELLIS])
def test_each_refused_read_has_a_code_of_its_own(sweep: Sweep) -> None:
    codes = []
    for route in sweep:
        if route.operation.has_target and route.operation.verb is not RESTORE:  # these have one address, and one code
            code = read_refusal(sweep.ask(route, 987_654, key=sweep._api.key), 404, "INVALID_ID")["errorCode"]
            codes.append(code)
    assert len(set(codes)) == len(codes) > 0
