"""Events and the messages about them in OpenAPI form: one schema for each kind of record, and the messages that webhooks send."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from trellis.core.alarms import ALARM_TYPES, MESSAGE
from trellis.core.catalogue import Catalogue
from trellis.core.events import EVENTS, event_types, list_types
from trellis.core.fields import Field
from trellis.core.operation import Operation
from trellis.core.verbs import singular_of
from trellis.core.webhooks import MESSAGE_HEADERS, TEST
from trellis.rest.docs.schemas import Schema, build_object, capitals, component_of, described, ref
from trellis.store.events import OperationFilter

_OF_THE_RECORD: Final = ("resource", "operation", "before", "after", "changed")  # members that depend on the kind of record
_OF_THE_MESSAGE: Final = ("type", "at")  # members beside the data of a message
_STRING: Final = {"type": "string"}


def build_event_schemas(catalogue: Catalogue) -> dict[str, Schema]:
    """Return the component schemas of all events in the feed, and of all messages that webhooks send, by name."""
    operations = tuple(catalogue.values())
    typed = _find_typed(operations)
    sent = _group_by_resource(event_types(operations))
    caused = list_types(operations)
    fields = {field.name: field for field in EVENTS}
    both = (*_OF_THE_RECORD, *_OF_THE_MESSAGE)
    schemas = {"EventOrigin": build_object((field for field in EVENTS if field.name not in both), "Event")}
    for resource, first in typed.items():
        name, record = capitals(singular_of(resource)), component_of(first)
        types = sent.get(singular_of(resource)) or _list_of(caused, resource)
        if first.kind is None and first.logged != first.response_fields:
            record = f"{name}InEvents"
            schemas[record] = build_object(first.logged, record)
        schemas[f"{name}Change"] = _change(fields, first, record, _list_operations(caused[kind] for kind in types))
        schemas |= _event_and_message(fields, name, types, is_sent=singular_of(resource) in sent)
    rest = {kind: wanted for kind, wanted in caused.items() if not any(kind in _list_of(caused, resource) for resource in typed)}
    resources = sorted({one.partition(".")[0] for one in _list_operations(rest.values())})
    other: dict[str, Schema] = {
        "resource": {"enum": resources, **_STRING},
        "operation": _STRING,
        **{member: fields[member].schema() for member in ("before", "after", "changed")},
    }
    schemas["OtherChange"] = _all_of("EventOrigin", fields, other)
    schemas |= _event_and_message(fields, "Other", (), is_sent=False)
    return schemas | {
        "Event": {
            "description": "An event. `resource` says of which kind.",
            "oneOf": [ref(f"{capitals(singular_of(resource))}Event") for resource in typed] + [ref("OtherEvent")],
        },
        "TestMessage": _test_message(),
        "AlarmMessage": _message({"enum": list(ALARM_TYPES), **_STRING}, build_object(MESSAGE, "Alarm")),
    }


def build_webhooks(catalogue: Catalogue) -> dict[str, Any]:
    """Return the messages that webhooks send, by the type of the event that each is about."""
    operations = tuple(catalogue.values())
    found: dict[str, Any] = {}
    for kind in event_types(operations):
        one = kind.partition(".")[0]
        found[kind] = _webhook(kind, f"{capitals(one)}Message", f"An event of the type `{kind}` has happened.")
    for kind in ALARM_TYPES:
        found[kind] = _webhook(kind, "AlarmMessage", f"An alarm of the type `{kind}` was raised. Only those who name it get it.")
    return found | {TEST: _webhook(TEST, "TestMessage", "Somebody asked for a test message. Nothing has happened.")}


def _find_typed(operations: Iterable[Operation]) -> dict[str, Operation]:
    """Return the resources whose events have records of a known form, each with an operation that returns such a record."""
    found: dict[str, Operation] = {}
    for operation in operations:
        is_record = operation.has_target and not operation.writes and operation.path is not None
        if is_record and (operation.kind is not None or operation.logged):
            found.setdefault(operation.resource, operation)
    return found


def _group_by_resource(types: Iterable[str]) -> dict[str, list[str]]:
    return {one: list(group) for one, group in groupby(types, key=lambda kind: kind.partition(".")[0])}


def _list_of(types: Iterable[str], resource: str) -> list[str]:
    return [kind for kind in types if kind.partition(".")[0] == singular_of(resource)]


def _list_operations(events: Iterable[OperationFilter]) -> list[str]:
    return sorted({name for wanted in events for name in (*wanted.always, *wanted.if_only, *wanted.unless_only)})


def _change(fields: dict[str, Field], first: Operation, record: str, operations: list[str]) -> Schema:
    members: dict[str, Schema] = {
        "resource": {"const": first.resource, **_STRING},
        "operation": {"enum": operations, **_STRING},
        **{side: {"oneOf": [ref(record), {"type": "null"}]} for side in ("before", "after")},
        "changed": fields["changed"].schema(),
    }
    if first.kind is not None:
        its_fields = (*first.kind.response_fields, *first.kind.fields)
        names = dict.fromkeys(field.name for field in its_fields if field.name != "updatedAt")
        members["changed"] = {"type": "array", "items": {"enum": list(names), **_STRING}}
    return _all_of("EventOrigin", fields, members)


def _all_of(above: str, fields: dict[str, Field], members: dict[str, Schema]) -> Schema:
    properties = {name: schema | {"description": described(fields[name])} for name, schema in members.items()}
    return {"allOf": [ref(above), {"type": "object", "required": list(properties), "properties": properties}]}


def _event_and_message(fields: dict[str, Field], name: str, types: Iterable[str], *, is_sent: bool) -> dict[str, Schema]:
    types = list(types)
    kind = {"enum": types, **_STRING} if types else fields["type"].schema()
    schemas = {f"{name}Event": _all_of(f"{name}Change", fields, {"type": kind, "at": fields["at"].schema()})}
    if is_sent:
        schemas[f"{name}Message"] = _message(kind, ref(f"{name}Change") | {"description": "The event."})
    return schemas


def _message(kind: Schema, data: Schema) -> Schema:
    at = {"type": "string", "format": "date-time", "description": "When it happened."}
    properties = {"type": kind | {"description": "The type of the event."}, "timestamp": at, "data": data}
    return {"type": "object", "required": list(properties), "properties": properties}


_TRACE: Final = "The trace of the request that has caused the event, as W3C Trace Context names it, if it belongs to one."


def _test_message() -> Schema:
    members = {"webhookId": {"type": "integer", "minimum": 1}, "note": _STRING}
    data = {"type": "object", "required": list(members), "properties": members, "description": "Which webhook it is for."}
    return _message({"const": TEST, **_STRING}, data)


def _webhook(kind: str, component: str, description: str) -> dict[str, Any]:
    return {
        "post": {
            "operationId": f"message.{kind}",
            "tags": ["Webhooks"],
            "summary": f"The message {kind}",
            "description": description,
            "security": [],
            "parameters": [
                {"name": name, "in": "header", "required": True, "description": doc, "schema": _STRING}
                for name, doc in MESSAGE_HEADERS.items()
            ]
            + [{"name": "traceparent", "in": "header", "required": False, "description": _TRACE, "schema": _STRING}],
            "requestBody": {"required": True, "content": {"application/json": {"schema": ref(component)}}},
            "responses": {
                "2XX": {"description": "It was received."},
                "410": {"description": "Nothing more is to be sent: the webhook is switched off."},
                "default": {"description": "It will be sent again."},
            },
        }
    }
