"""Sweeps over what runs other operations, batches and the undo of change sets: no grant is missing unseen, and nothing is told."""

from typing import Any, Final

import pytest

from tests.api_client import ApiClient, Json, read_refusal
from tests.database_state import DatabaseState, Rows
from tests.fixture_types import MakeKey, Run
from tests.sweeps.grantable import create_target, given_to
from trellis.compose import catalogue_of
from trellis.core.gate import Gate
from trellis.core.operation import Operation
from trellis.core.verbs import CREATE, RESTORE
from trellis.http.routes import Route, build_routes
from trellis.kinds import KINDS
from trellis.rest.docs.examples import given_of

CATALOGUE: Final = catalogue_of(KINDS)
NAMES: Final = frozenset(operation.name for operation in CATALOGUE.grantable)
ROUTES: Final = {route.operation.name: route for route in build_routes(CATALOGUE)}
SECRET: Final = "Silverbirch"
NOBODY: Final = 987_654
FIRST: Final[Json] = {"operation": "groups.get", "id": 2}  # something that all these keys may do, unless it is what they lack


def batchable(gate: Gate) -> list[Operation]:
    found = list(gate.environment.batchable.values())
    assert len(found) > len(KINDS) * 3
    return found


def build_step(run: Run, operation: Operation, external_id: str) -> Json:
    """Make a record with a telling name, and return the step of a batch that is about it."""
    about: Json = {"operation": operation.name}
    body = given_to(operation, SECRET) if operation.verb is not None and operation.verb.body is not None else {}
    if operation.fork is not None:
        operation, body = CATALOGUE[operation.fork.to[0]], {}
    made = create_target(CATALOGUE, operation, run, SECRET)
    if operation.path_field is not None:
        run(f"{operation.resource}.create", name=SECRET, externalId=external_id)
        body["externalId"] = external_id
    elif operation.verb is not None and operation.verb.name == "order":
        body = {"ids": [run(f"{operation.resource}.create", name=SECRET)["id"]]}
    return about | {"body": body} | ({"id": made} if operation.has_target else {})


def redirect(step: Json) -> Json:
    """Return the same step about a record that there is not."""
    body = step["body"] | ({"externalId": "nobody"} if "externalId" in step["body"] else {})
    return step | ({"id": NOBODY} if "id" in step else {}) | {"body": body}


def needed_by(operation: Operation) -> tuple[str, ...]:
    return operation.grants[:1] if operation.fork is not None else operation.grants


def read_batch(api: ApiClient, key: str, *steps: Json, **more: Any) -> Json:
    return read_refusal(api.post("/core/batch", {"operations": list(steps)}, key=key, **more), 409, "BATCH_REFUSED")


def test_a_batch_is_refused_without_one_grant_of_one_operation(
    gate: Gate, run: Run, api: ApiClient, key: MakeKey, database: DatabaseState
) -> None:
    for number, operation in enumerate(batchable(gate)):
        assert operation.grants, operation.name
        step = build_step(run, operation, f"e-{number}")
        for missing in needed_by(operation):
            text = key(sorted(NAMES - {missing}), rateLimit=0)
            with database.unchanged():
                first = () if missing == FIRST["operation"] else (FIRST,)
                refused = read_batch(api, text, *first, step)
                dry = read_batch(api, text, *first, step, params={"dryRun": "1"})
            for document in (refused, dry):
                assert (document["index"], document["operation"]) == (len(first), operation.name)
                assert document["problem"]["missingOperation"] == missing
                assert SECRET not in str(document)


def test_what_a_key_may_not_do_is_refused_alike_whether_there_is_such_a_record_or_not(
    gate: Gate, run: Run, api: ApiClient, key: MakeKey, database: DatabaseState
) -> None:
    for number, operation in enumerate(batchable(gate)):
        step = build_step(run, operation, f"e-{number}")
        text = key(sorted(NAMES - set(needed_by(operation)) - {"events.list"}), rateLimit=0)
        with database.unchanged():
            told = [read_batch(api, text, about) for about in (step, redirect(step))]
        plain = [str({**one, "requestId": "", "problem": {**one["problem"], "requestId": ""}}) for one in told]
        assert plain[0].replace(str(step.get("id", "")), "N") == plain[1].replace(str(NOBODY), "N").replace(
            str(step.get("id", "")), "N"
        ), operation.name


def test_with_all_grants_each_of_these_steps_runs(gate: Gate, run: Run, api: ApiClient) -> None:
    """Or else the others would be refused for what is wrong with the steps."""
    for number, operation in enumerate(batchable(gate)):
        answer = api.post("/core/batch", {"operations": [FIRST, build_step(run, operation, f"e-{number}")]})
        assert answer.status_code == 200, answer.text


def test_if_match_is_refused_by_all_that_change_no_record(gate: Gate, run: Run, api: ApiClient, database: DatabaseState) -> None:
    unconditional = 0
    for number, operation in enumerate(batchable(gate)):
        step = build_step(run, operation, f"e-{number}") | {"ifMatch": '"of-another-version"'}
        with database.unchanged():
            problem = read_batch(api, api.key, step)["problem"]
        assert problem["errorMessage"] == ("PRECONDITION_FAILED" if operation.is_conditional else "INVALID_VALUE")
        unconditional += not operation.is_conditional
    assert 0 < unconditional < len(batchable(gate))


@pytest.mark.parametrize("tag", ['"of-another-version"', "*"])
def test_the_header_if_match_is_refused_by_all_that_change_no_record(
    run: Run, api: ApiClient, database: DatabaseState, tag: str
) -> None:
    refused = 0
    for route in ROUTES.values():
        if not route.operation.writes or route.operation.is_conditional:
            continue
        with database.unchanged():
            answer = send(api, route, headers={"If-Match": tag})
        read_refusal(answer, 400, "INVALID_HEADER")
        refused += 1
    assert refused > len([route for route in ROUTES.values() if route.operation.verb is CREATE])


def send(api: ApiClient, route: Route, **more: Any) -> Any:
    path = route.path.replace("{id}", "1").replace("{externalId}", "e")
    return api(route.method, path, json=given_of(route.operation), **more)


# --- the undo of change sets --------------------------------------------------------------------------------------


def test_a_change_set_is_not_undone_without_the_grant_for_each_of_its_resources(
    run: Run, api: ApiClient, key: MakeKey, database: DatabaseState
) -> None:
    """By the key whose change set it is, and by another; of creations, changes and deletes."""
    kinds = [kind for kind in KINDS if f"{kind.name}.create" in NAMES]
    assert len(kinds) > 2
    for kind in kinds:
        missing = f"{kind.name}.{RESTORE.name}"
        other = next(one.name for one in kinds if one is not kind)
        owner, reader = key("*", rateLimit=0), key(sorted(NAMES - {missing}), rateLimit=0)
        number = newest_key(run) - 1
        old = run(f"{kind.name}.create", name=f"{SECRET} of old")["id"]
        for steps in (
            [{"operation": f"{kind.name}.create", "body": {"name": SECRET}}],
            [{"operation": f"{kind.name}.update", "id": old, "body": {"name": SECRET}}],
            [{"operation": f"{kind.name}.delete", "id": old}],
        ):
            run("keys.update", number, grants=["*"])
            steps.append({"operation": f"{other}.create", "body": {"name": SECRET}})
            done = api.post("/core/batch", {"operations": steps}, key=owner)
            path = f"/core/changesets/{done.headers['change-set-id']}/restore"
            run("keys.update", number, grants=sorted(NAMES - {missing, "events.list"}))
            before = without_counters(database)  # on PostgreSQL a process notes there, a little later, that it knows the new grants
            for text in (owner, reader):
                for more in ({}, {"dryRun": True}, {"skipConflicts": True}):
                    document = read_refusal(api.post(path, more, key=text), 403, "NO_PERMISSION")
                    assert document["missingOperation"] == missing
                    assert SECRET not in str(document)
            assert without_counters(database) == before


def without_counters(database: DatabaseState) -> Rows:
    return {name: rows for name, rows in database.rows().items() if name != "counters"}


def newest_key(run: Run) -> int:
    return int(run("keys.list", perPage=1000)["results"][-1]["id"])


def test_another_key_s_change_set_is_as_good_as_none_without_events_list(
    run: Run, api: ApiClient, key: MakeKey, database: DatabaseState
) -> None:
    stranger = key(sorted(NAMES - {"events.list"}), rateLimit=0)
    done = api.post("/core/batch", {"operations": [{"operation": "forums.create", "body": {"name": SECRET}}]})
    number = done.headers["change-set-id"]
    with database.unchanged():
        told = [
            read_refusal(api.post(f"/core/changesets/{one}/restore", {}, key=stranger), 404, "INVALID_ID")
            for one in (number, NOBODY)
        ]
    assert [told[0]["detail"].replace(number, "N")] == [told[1]["detail"].replace(str(NOBODY), "N")]
