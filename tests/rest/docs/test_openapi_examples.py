"""The examples in the OpenAPI document, each sent to the service: every one is true."""

from typing import Any

import httpx
import orjson
import pytest
import sqlalchemy as sa

from tests.api_client import ApiClient
from tests.community import ENDPOINTS, Community
from tests.conftest import runner
from tests.fixture_types import Clock, MakeKey, Run
from tests.rest.documented import (
    GALLERIES,
    DocumentedOperation,
    Json,
    create_example_records,
    documented_operations,
    resolve_reference,
    validate,
)
from trellis.asgi import Application
from trellis.compose import catalogue_of, compose
from trellis.core.gate import Gate
from trellis.core.operation import Operation
from trellis.kinds import KINDS
from trellis.rest.docs.examples import MOMENT, target_of
from trellis.rest.docs.openapi import document
from trellis.settings import Settings
from trellis.store.engine import Transaction
from trellis.store.tables import nodes, proposals

CATALOGUE = catalogue_of(KINDS)
sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def openapi() -> Json:
    """The OpenAPI document, as a program reads it."""
    read: Json = orjson.loads(orjson.dumps(document(CATALOGUE)))
    return read


def _send(api: ApiClient, promise: DocumentedOperation, *, dry: bool = False, key: str | None = None) -> Json:
    """Send the example of an operation, and see that the answer is what was promised; give it."""
    parameters = [resolve_reference(promise.document, parameter) for parameter in promise.told["parameters"]]
    path = promise.path
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
    body = promise.told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {})
    sent = {"json": body["example"]["value"]} if body else {}
    needed = {one["name"]: str(one["example"]) for one in parameters if one["in"] == "query" and one.get("required")}
    params = needed | ({"dryRun": "1"} if dry else {})
    answer = api(promise.method, path, params=params, **sent, **({"key": key} if key else {}))
    promise.keeps(answer)
    return {"status": answer.status_code, "body": answer.json()}


def test_every_example_is_true(api: ApiClient, gate: Gate, run: Run, clock: Clock, key: MakeKey, openapi: Json) -> None:
    assert clock.text == MOMENT
    create_example_records(run, gate.catalogue)
    caller = run("keys.list", search="Everything")["results"][0]["id"]
    visited = 0
    in_order = sorted(documented_operations(openapi), key=lambda promise: promise.name.startswith("structure."))
    for promise in in_order:  # the document's forum comes first among its siblings: all others move
        _give_external_id(gate, CATALOGUE[promise.name])
        _reopen_proposals(gate, caller if promise.name == "proposals.withdraw" else 0)
        if CATALOGUE[promise.name].writes:
            dry = _send(api, promise, dry=True)
            assert dry["status"] == 200
            assert alike(promise, dry["body"], promise.example(200, "dryRun")), promise.name
            if promise.name.endswith(".delete_external"):  # the example's record is still needed
                _give_external_id(
                    gate, CATALOGUE[promise.name], run(promise.name.replace("delete_external", "create"), name="Spare")["id"]
                )
        success = next(int(status) for status in promise.told["responses"] if "answer" in _examples(promise, status))
        asking = key(["forums.create", "forums.list"]) if promise.name == "core.hello" else None
        sent = _send(api, promise, key=asking)
        _leave_out_built_in(promise, sent["body"])
        for field in CATALOGUE[promise.name].secret_once:  # different each time
            sent["body"][field.name] = field.example
        assert alike(promise, sent["body"], promise.example(success)), promise.name
        assert sent["status"] == success
        visited += 1
    assert visited == ENDPOINTS


def _give_external_id(gate: Gate, operation: Operation, node: int | None = None) -> None:
    """Give the external id of an example to a record, and take it from all others; nothing tells of it."""
    if operation.kind is None:
        return
    named, kind = operation.path_field, operation.kind.name

    def give(tx: Transaction) -> None:
        tx.connection.execute(sa.update(nodes).where(nodes.c.kind == kind).values(external_id=None))
        if named is not None:
            owner = nodes.c.id == (node or target_of(operation))
            tx.connection.execute(sa.update(nodes).where(nodes.c.kind == kind, owner).values(external_id=named.example))

    gate.store.write(give).result()


def _reopen_proposals(gate: Gate, key: int) -> None:
    """Open the proposal again that each example is about, as one of a key or of the terminal; nothing tells of it."""
    again = sa.update(proposals).values(state="open", actor_type="key" if key else "terminal", actor_id=key)
    gate.store.write(lambda tx: tx.connection.execute(again)).result()


def alike(promise: DocumentedOperation, answer: Any, example: Any) -> bool:
    """Return whether an answer is the example; of those that show another community, whether it is of the same shape."""
    is_of_another_day = promise.name.startswith(
        ("access.", "events.", "changesets.", "core.batch", "structure.", "proposals.")
    ) or promise.name.endswith(".tree")
    if is_of_another_day:
        return list(answer)[: len(example)] == list(example)
    return bool(_without_maker(answer) == _without_maker(example))


def _without_maker(value: Any) -> Any:
    """Leave out who made a webhook: in the tests, another key."""
    if isinstance(value, dict):
        return {name: _without_maker(below) for name, below in value.items() if name != "maker"}
    return [_without_maker(below) for below in value] if isinstance(value, list) else value


def _leave_out_built_in(promise: DocumentedOperation, body: Json | None) -> None:
    """The examples of lists show a community in which nothing is built in."""
    kind = CATALOGUE[promise.name].kind
    if kind is not None and body is not None and "results" in body:
        body["results"] = [record for record in body["results"] if record["id"] not in kind.built_in]
        body["totalResults"] -= len(kind.built_in)


def test_an_export_as_yaml_is_told_too(api: ApiClient, openapi: Json, community: Community) -> None:
    (promise,) = (one for one in documented_operations(openapi) if one.name == "structure.export")
    answer = api.get(f"{promise.path}?format=yaml")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/yaml")
    promise.keeps(answer)


def test_an_answer_that_is_known_has_the_headers_that_are_told(api: ApiClient, openapi: Json, community: Community) -> None:
    for name in ("forums.list", "forums.get", "events.list", "webhooks.list", "core.hello"):
        (promise,) = (one for one in documented_operations(openapi) if one.name == name)
        path = promise.path.replace("{id}", str(community.news))
        for sent in ({}, {"Accept": "application/x-ndjson"}):
            first = api.get(path, headers=sent)
            again = api.get(path, headers={**sent, "If-None-Match": first.headers["etag"]})
            assert again.status_code == 304, name
            promise.keeps(again)


def test_what_a_put_creates_is_answered_as_it_is_told(api: ApiClient, openapi: Json) -> None:
    names = [promise for promise in documented_operations(openapi) if promise.name.endswith(".put_external")]
    assert names
    for promise in names:
        answer = api("PUT", promise.path.replace("{externalId}", "new"), json={"name": "New"}, headers={"Change-Set": "import"})
        assert (answer.status_code, "event" in answer.headers, "change-set-id" in answer.headers) == (201, True, True)
        promise.keeps(answer)


def _examples(promise: DocumentedOperation, status: str) -> Json:
    found: Json = promise.answer(int(status)).get("content", {}).get("application/json", {}).get("examples", {})
    return found


@sqlite
def test_every_example_of_a_parameter_is_taken(api: ApiClient, openapi: Json) -> None:
    tried = 0
    for promise in documented_operations(openapi):
        if promise.method != "GET" or "{" in promise.path:
            continue
        parameters = [resolve_reference(openapi, parameter) for parameter in promise.told["parameters"]]
        needed = {one["name"]: str(one["example"]) for one in parameters if one["in"] == "query" and one.get("required")}
        for parameter in parameters:
            if parameter["in"] == "query" and (example := parameter.get("example", parameter["schema"].get("default"))) is not None:
                validate(openapi, parameter["schema"], example)
                promise.keeps(answer := api.get(promise.path, params=needed | {parameter["name"]: str(example)}))
                assert answer.status_code == 200, answer.text
                tried += 1
    assert tried > 20


@sqlite
def test_forms_are_taken_as_they_are_told(api: ApiClient, openapi: Json) -> None:
    for promise in documented_operations(openapi):
        if promise.name.endswith(".create"):
            value = promise.told["requestBody"]["content"]["application/x-www-form-urlencoded"]["examples"]["example"]["value"]
            joined = {name: orjson.dumps(one).decode() if isinstance(one, list) else one for name, one in value.items()}
            flat = {name: one for name, one in joined.items() if not isinstance(one, dict)}
            nested = {f"{name}[{below}]": who for name, one in value.items() if isinstance(one, dict) for below, who in one.items()}
            assert _alike(api.post(promise.path, data={**flat, **nested}), promise)
            parts = {
                name: (None, orjson.dumps(one).decode() if isinstance(one, dict | list) else str(one))
                for name, one in value.items()
            }
            assert _alike(api.post(promise.path, files=parts), promise)


def _alike(answer: httpx.Response, promise: DocumentedOperation) -> bool:
    """Return whether a form made the record of the JSON example, ids and what follows from them apart."""
    made: Json = answer.json()
    promise.keeps(answer)
    told = promise.example(201)
    return all(made[name] == told[name] for name in told if name not in {"id", "url", "secret", "maker"})


@sqlite
def test_refusals_are_as_they_are_told(api: ApiClient, key: MakeKey, openapi: Json) -> None:
    nothing_granted = key(())
    for promise in documented_operations(openapi):
        path = promise.path.replace("{id}", "999999").replace("{externalId}", "nowhere")
        for sent in ({"key": None}, {"key": "trl_nonsense"}, {"key": nothing_granted}, {"params": {"no such parameter": "1"}}, {}):
            promise.keeps(api(promise.method, path, **sent))
        if promise.method == "POST":
            for body in (
                {"content": b"{", "headers": {"Content-Type": "application/json"}},
                {"content": b"a", "headers": {"Content-Type": "text/plain"}},
            ):
                promise.keeps(api(promise.method, path, **body))
            everything_wrong = {name: {"?": "?"} for name in _members(promise)}
            promise.keeps(api(promise.method, path, json=everything_wrong))


def _members(promise: DocumentedOperation) -> list[str]:
    """Name the members of an operation's body, if it takes one."""
    if "requestBody" not in promise.told:
        return []
    schema = promise.told["requestBody"]["content"]["application/json"]["schema"]
    return list(resolve_reference(promise.document, schema)["properties"])


@sqlite
def test_the_examples_of_a_kind_declared_here_are_true(settings: Settings, clock: Clock) -> None:
    gate = compose(settings, (*KINDS, GALLERIES), clock)
    everything = runner(gate)("keys.create", name="Everything", grants=["*"])["key"]
    api = ApiClient(Application(settings, gate), everything)
    try:
        told = [promise for promise in documented_operations(document(gate.catalogue)) if promise.name.startswith("galleries.")]
        assert {promise.name for promise in told} == {o.name for o in gate.catalogue.values() if o.kind is GALLERIES and o.path}
        for promise in told:
            is_last = promise.name.endswith(".delete_external")  # the example's record is still needed
            spare = runner(gate)("galleries.create", name="Spare")["id"] if is_last else None
            _give_external_id(gate, gate.catalogue[promise.name], spare)
            sent = _send(api, promise)
            assert alike(promise, sent["body"], promise.example(sent["status"]))
    finally:
        api.close()
        gate.store.close()
