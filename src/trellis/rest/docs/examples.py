"""Examples of requests and responses, generated from the declarations. The tests send each request and compare the response."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trellis.core.fields import Field, Timestamp
from trellis.core.nodes import NodeKind, serialize_node
from trellis.core.operation import Operation
from trellis.core.paging import PER_PAGE, serialize_page
from trellis.core.verbs import Body, Response
from trellis.rest.docs.schemas import Schema, verb_of, writable
from trellis.store.nodes import Node

COMMUNITY: Final = "https://community.example"
MOMENT: Final = "2026-01-31T09:30:00.000Z"
EVENT: Final = 12  # the event in the examples
_TARGETS: Final[Mapping[str, int]] = {"events": EVENT}

Values = dict[str, Any]


def id_of(kind: NodeKind) -> int:
    """Return the id in the examples of a kind: the first one that is not built in."""
    return max(kind.built_in, default=0) + 1


def target_of(operation: Operation) -> int:
    """Return the id in the path of an operation's example."""
    return _TARGETS.get(operation.resource, 1) if operation.kind is None else id_of(operation.kind)


def given_of(operation: Operation) -> Values:
    """Return the input in an operation's example: its body, or its query if it reads. A write without a body sends nothing."""
    if operation.verb is not None and operation.verb.body is not None:
        return _SENT[operation.verb.body](operation)
    if operation.writes:
        return {}
    fields = (field for field in operation.fields if field != operation.path_field)
    shown = (field for field in fields if field.required or _is_short(field.example))
    return {field.name: _value(field) for field in shown}


def _is_short(example: Any) -> bool:
    return isinstance(example, str | int)


def _new(operation: Operation) -> Values:
    """Return every field that has an example or is required."""
    return _complete_values(operation.fields)


def _complete_values(fields: Iterable[Field]) -> Values:
    return {field.name: _value(field) for field in writable(fields) if field.required or field.example is not None}


def _changes(operation: Operation) -> Values:
    """Return changes of the name and of the kind's first field that has an example; for other records, of the last text.

    An operation on nodes that does not take a name has parameters of its own.
    """
    if operation.kind is None:
        text = next(field for field in reversed(writable(operation.fields)) if isinstance(field.example, str))
        return {text.name: f"Another {operation.singular}"}
    if operation.kind.name_field not in operation.fields:
        return _complete_values(operation.fields)
    own = (field for field in writable(operation.kind.fields) if field.example is not None)
    return {operation.kind.name_field.name: f"Another {operation.singular}"} | {f.name: _value(f) for f in list(own)[:1]}


def _options(operation: Operation) -> Values:
    """Return the options that have an example."""
    return {field.name: field.example for field in writable(operation.fields) if field.example is not None}


_SENT: Final[Mapping[Body, Callable[[Operation], Values]]] = {Body.NEW: _new, Body.CHANGES: _changes, Body.OPTIONS: _options}


def _value(field: Field) -> Any:
    if field.example is not None:
        return field.example
    return field.default if field.default is not None else _some(field.type.schema())


def _some(schema: Schema) -> Any:
    """Return a value that a schema allows."""
    if "const" in schema:
        return schema["const"]
    if listed := schema.get("examples") or schema.get("enum"):
        return listed[0]
    for choice in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        return _some(choice)
    kinds = schema.get("type", "string")
    least = schema.get("minimum", 1)
    by_type: Values = {
        "string": "Text",
        "integer": least,
        "number": least,
        "boolean": True,
        "array": [],
        "object": {},
        "null": None,
    }
    return by_type[kinds if isinstance(kinds, str) else kinds[0]]


def answer_of(operation: Operation) -> Any:
    """Return the response to the example of an operation, in a community with no other records."""
    return _ANSWERED[verb_of(operation).response](operation)


def _null_response(_: Operation) -> None:
    return None


def _own_answer(operation: Operation) -> Values:
    return {field.name: _value(field) for field in operation.response_fields}


def _page(operation: Operation) -> Values:
    return serialize_page([_example_record(operation)], 1, 1, PER_PAGE)


def _example_record(operation: Operation) -> Values:
    given = given_of(operation) if operation.writes else {}
    if (named := operation.path_field) is not None:
        given |= {named.name: named.example}
    if operation.kind is None:
        return {field.name: _stored_value(field) for field in (*operation.response_fields, *operation.secret_once)} | given
    another = operation.has_target and verb_of(operation).creates  # it follows the one in the path
    return _record(operation.kind, _complete_values(operation.kind.accepted) | given, place=int(another))


_ANSWERED: Final[Mapping[Response, Callable[[Operation], Any]]] = {
    Response.RECORD: _example_record,
    Response.PAGE: _page,
    Response.FEED: _own_answer,
    Response.ANSWER: _own_answer,
    Response.NULL: _null_response,
}


def _stored_value(field: Field) -> Any:
    """Return the value of a field in a record to which nothing has happened yet."""
    if field.example is not None or field.default is not None:
        return field.example if field.example is not None else field.default
    return MOMENT if isinstance(field.type, Timestamp) and not field.type.nullable else None


def plan_of(operation: Operation) -> Any:
    """Return the response to a dry run of the example of a write."""
    answer = answer_of(operation)
    if answer is None:
        return {
            "dryRun": True,
            "deleted": {"count": 1, "ids": [target_of(operation)]},
            "moved": {"count": 0, "ids": [], "to": None},
            "changed": {"count": 0, "nodes": []},
        }
    if verb_of(operation).response is Response.ANSWER:
        return answer | {"dryRun": True}
    once = {field.name for field in operation.secret_once}
    return {name: value for name, value in answer.items() if name not in once}


def _record(kind: NodeKind, sent: Values, place: int = 0) -> Values:
    """Return the record created from these values, as the service returns it."""
    given = {field.name: field.type.parse(sent[field.name]) for field in writable(kind.accepted) if field.name in sent}
    permissions = given.get("permissions") or {}
    node = Node(
        id=id_of(kind) + place,
        parent_id=None,
        position=place,
        name=given[kind.name_field.name],
        fields=dict(kind.prepare(_lists({field.name: given.get(field.name, field.default) for field in kind.fields}))),
        permissions=_lists({option: permissions.get(option, ()) for option in kind.options}),
        created_at=MOMENT,
        updated_at=MOMENT,
        external_id=given.get(kind.external_id_field.name),
    )
    return serialize_node(kind, node, "", COMMUNITY)


def _lists(values: Mapping[str, Any]) -> Values:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
