"""Sweeps over the events and the messages of every kind and verb: each is as the OpenAPI document says.

No kind is named here.
"""

from typing import Any, Final

import orjson
import pytest
from openapi_schema_validator import OAS31Validator, oas31_format_checker

from tests.api_client import ApiClient
from tests.fixture_types import Clock, MakeKey, Run
from tests.rest.documented import Json
from tests.sweeps.grantable import create_target
from trellis.compose import catalogue_of
from trellis.core.alarms import ALARM_TYPES, build_alarm_message
from trellis.core.events import event_types
from trellis.core.gate import Gate
from trellis.core.kind import NodeKind
from trellis.core.verbs import CREATE, DELETE, UPDATE, singular_of
from trellis.core.webhooks import TEST
from trellis.core.webhooks.message import build_message, build_test_message
from trellis.kinds import KINDS
from trellis.rest.docs.examples import given_of
from trellis.rest.docs.openapi import document
from trellis.store import events

CATALOGUE: Final = catalogue_of(KINDS)
TYPES: Final = event_types(CATALOGUE.values())

sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def openapi() -> Json:
    """The OpenAPI document, as a program reads it."""
    read: Json = orjson.loads(orjson.dumps(document(CATALOGUE)))
    return read


class Schemas:
    """The schemas of a document, to judge values by."""

    def __init__(self, openapi: Json) -> None:
        self._openapi = openapi

    def judge(self, schema: Json, value: Any) -> list[str]:
        """Return what is wrong with a value."""
        whole = {**schema, "components": self._openapi["components"]}
        return [
            f"{error.json_path}: {error.message}"
            for error in OAS31Validator(whole, format_checker=oas31_format_checker).iter_errors(value)
        ]

    def judge_event(self, value: Json) -> list[str]:
        """Return what is wrong with an event of the feed: by the schema of all, and by that of its kind, which says more."""
        schemas = self._openapi["components"]["schemas"]
        members = schemas["EventsList"]["properties"]["results"]["items"]
        own = f"{value['type'].partition('.')[0].capitalize()}Event"
        return [
            *self.judge(members, value),
            *self.judge({"$ref": f"#/components/schemas/{own if own in schemas else 'OtherEvent'}"}, value),
        ]

    def judge_message(self, value: Json) -> list[str]:
        """Return what is wrong with the message about an event."""
        body = self._openapi["webhooks"][value["type"]]["post"]["requestBody"]["content"]["application/json"]
        return self.judge(body["schema"], value)


def _leave_all_events(kind: NodeKind, run: Run) -> None:
    """Do with records of a kind everything that leaves an event."""
    given = given_of(CATALOGUE[kind.operation(CREATE.name)])
    first, second = (
        run(kind.operation(CREATE.name), **given | {"externalId": None, "name": f"{name}"})["id"] for name in ("One", "Two")
    )
    update = kind.operation(UPDATE.name)
    run(update, first, name="Changed", **{field.name: "a password" for field in kind.secrets})
    if kind.ordered:
        run(update, second, position=1)
    if kind.tree:
        run(update, second, parentId=first)
    if kind.operation("copy") in CATALOGUE:
        run(kind.operation("copy"), first, **{"withChildren": True} if kind.tree else {})
    run(kind.operation("put_external"), externalId="by-program", name="By a program")
    run(kind.operation(DELETE.name), first, **{"deleteChildrenOrMove": -1} if kind.tree else {})
    deleted = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    run("events.restore", deleted)
    changed = run("events.list", type=f"{singular_of(kind.name)}.updated", limit=1)["results"][0]["seq"]
    run("events.restore", changed)
    left = {event["type"] for event in run("events.list", resource=kind.name, limit=1000)["results"]}
    for operation in (one for one in CATALOGUE.values() if one.kind is kind):
        if not left.issuperset(event_types([operation])):
            run(operation.name, create_target(CATALOGUE, operation, run), **given_of(operation))


@sqlite
def test_every_event_and_every_message_is_as_documented(
    api: ApiClient, gate: Gate, run: Run, key: MakeKey, openapi: Json, clock: Clock
) -> None:
    for kind in KINDS:
        _leave_all_events(kind, run)
    webhook = run("webhooks.create", url="https://hooks.example/x", events=["*"])["id"]
    run("webhooks.update", webhook, description="For the search", skipMissed=True)
    for operation in ("webhooks.rotate", "webhooks.test", "webhooks.delete"):
        run(operation, webhook)
    for verb in ("approve", "reject", "withdraw"):
        run(
            f"proposals.{verb}",
            create_target(CATALOGUE, CATALOGUE[f"proposals.{verb}"], run),
            **{"reason": "No."} if verb == "reject" else {},
        )
    forgotten = create_target(CATALOGUE, CATALOGUE["proposals.approve"], run)
    clock.move(days=8)
    run("proposals.expire", forgotten)
    key("*", name="Plugin")

    schemas = Schemas(openapi)
    feed = api.get("/core/events?limit=1000").json()["results"]
    wrong = {one["seq"]: found for one in feed if (found := schemas.judge_event(one))}
    assert wrong == {}
    assert set(TYPES) <= {one["type"] for one in feed}

    with gate.store.reading() as tx:
        kept = [event for one in feed if (event := events.find(tx, one["seq"])) is not None]
    messages = [orjson.loads(orjson.dumps(build_message(event))) for event in kept]
    sent = [message for message in messages if message["type"] in TYPES] + [build_test_message(webhook, clock.text)]
    sent += [orjson.loads(orjson.dumps(build_alarm_message(kind, event))) for kind in ALARM_TYPES for event in kept[-1:]]
    assert {message["type"]: told for message in sent if (told := schemas.judge_message(message))} == {}
    assert {message["type"] for message in sent} == set(openapi["webhooks"]) == {*TYPES, *ALARM_TYPES, TEST}


def test_the_number_of_an_event_has_one_name(openapi: Json) -> None:
    """An event calls it `seq`; whatever else names an event calls it `event`."""
    schemas = openapi["components"]["schemas"]

    def find(schema: Any, name: str) -> bool:
        parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
        return (isinstance(schema, dict) and name in schema.get("properties", {})) or any(find(part, name) for part in parts)

    assert [name for name, schema in schemas.items() if find(schema, "seq")] == ["EventOrigin"]
    assert [name for name, schema in schemas.items() if find(schema, "eventId") or find(schema, "sequence")] == []
    assert {"CoreBatch", "EventsRestore", "Problem"} <= {name for name, schema in schemas.items() if find(schema, "event")}
    assert "Event" in openapi["components"]["headers"]


@sqlite
def test_what_is_no_event_of_a_kind_is_none_by_the_document(openapi: Json, run: Run) -> None:
    """The schemas say something: a wrong type, a member of another kind or a record with a member left out does not pass."""
    schemas = Schemas(openapi)
    kind = KINDS[1]
    run(kind.operation(CREATE.name), name="One")
    event = run("events.list", resource=kind.name)["results"][0]
    assert schemas.judge_event(event) == []
    for wrong in (
        {"type": "nothing.created"},
        {"operation": "keys.create"},
        {"changed": ["colour of the sky"]},
        {"after": {"id": 1}},
        {"after": "a forum"},
        {"before": 7},
    ):
        assert schemas.judge_event(event | wrong), wrong
