"""Examples of requests and answers, made from the declarations. The tests send each request and compare the answer."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.fields import Field, Timestamp
from trellis.core.nodes import NodeKind, serialize_node
from trellis.core.operation import Operation
from trellis.core.paging import PER_PAGE, serialize_page
from trellis.rest.docs.schemas import Schema, writable
from trellis.store.nodes import Node

COMMUNITY: Final = "https://community.example"
MOMENT: Final = "2026-01-31T09:30:00.000Z"
EVENT: Final = 12  # the event in the examples

Values = dict[str, Any]


def id_of(kind: NodeKind) -> int:
    """Give the id in the examples of a kind: that of the first one that is not built in."""
    return max(kind.built_in, default=0) + 1


def target_of(operation: Operation) -> int:
    """Give the id in the path of an operation's example."""
    if operation.kind is not None:
        return id_of(operation.kind)
    return EVENT if operation.verb == "restore" else 1


def given_of(operation: Operation) -> Values:
    """Give what the example of an operation sends: its body, or the query string of one that only reads or deletes."""
    if operation.kind is not None and operation.verb == "create":
        return _new(operation.kind)
    if operation.kind is not None and operation.verb == "update":
        return _changes(operation.kind)
    if operation.verb == "create":
        return {field.name: _value(field) for field in writable(operation.fields) if field.required or field.example is not None}
    if operation.verb == "update":
        text = next(field for field in reversed(writable(operation.fields)) if isinstance(field.example, str))
        return {text.name: f"Another {operation.singular}"}
    if operation.writes:
        return {}
    shown = (field for field in operation.fields if field.required or _is_short(field.example))
    return {field.name: _value(field) for field in shown}


def _is_short(example: Any) -> bool:
    return isinstance(example, str | int)


def _new(kind: NodeKind) -> Values:
    """Show every field that has an example or must be sent."""
    return {field.name: _value(field) for field in writable(kind.accepted) if field.required or field.example is not None}


def _changes(kind: NodeKind) -> Values:
    """Change the name, and the first field of the kind's own that has an example."""
    own = (field for field in writable(kind.fields) if field.example is not None)
    return {kind.name_field.name: f"Another {kind.singular}"} | {field.name: _value(field) for field in list(own)[:1]}


def _value(field: Field) -> Any:
    if field.example is not None:
        return field.example
    return field.default if field.default is not None else _some(field.type.schema())


def _some(schema: Schema) -> Any:
    """Give some value that a schema allows."""
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
    """Give the answer to the example of an operation, in a community that holds nothing else."""
    kind = operation.kind
    if kind is None:
        return _own_answer(operation)
    match operation.verb:
        case "delete":
            return None
        case "list":
            return serialize_page([_record(kind, _new(kind))], 1, 1, PER_PAGE)
        case "update":
            return _record(kind, _new(kind) | _changes(kind))
        case _:
            return _record(kind, _new(kind))


def _own_answer(operation: Operation) -> Any:
    match operation.verb:
        case "look" | "feed" | "restore":
            return {field.name: _value(field) for field in operation.answers}
        case "delete":
            return None
    record = {field.name: _kept(field) for field in (*operation.answers, *operation.once)}
    record |= given_of(operation) if operation.writes else {}
    return serialize_page([record], 1, 1, PER_PAGE) if operation.verb == "list" else record


def _kept(field: Field) -> Any:
    """Give what a record holds where nothing has happened to it yet."""
    if field.example is not None or field.default is not None:
        return field.example if field.example is not None else field.default
    return MOMENT if isinstance(field.type, Timestamp) and not field.type.nullable else None


def plan_of(operation: Operation) -> Any:
    """Give the answer to the example of a writing operation when it is run dry."""
    if operation.verb == "restore":
        return answer_of(operation) | {"dryRun": True}
    if operation.verb != "delete":
        once = {field.name for field in operation.once}
        return {name: value for name, value in answer_of(operation).items() if name not in once}
    return {
        "dryRun": True,
        "deleted": {"count": 1, "ids": [target_of(operation)]},
        "moved": {"count": 0, "ids": [], "to": None},
        "changed": {"count": 0, "nodes": []},
    }


def _record(kind: NodeKind, sent: Values) -> Values:
    """Give the record that was made from these values, as the service answers it."""
    given = {field.name: field.type.parse(sent[field.name]) for field in writable(kind.accepted) if field.name in sent}
    permissions = given.get("permissions") or {}
    node = Node(
        id=id_of(kind),
        parent_id=None,
        position=0,
        name=given[kind.name_field.name],
        fields=dict(kind.prepare(_lists({field.name: given.get(field.name, field.default) for field in kind.fields}))),
        permissions=_lists({option: permissions.get(option, ()) for option in kind.options}),
        created_at=MOMENT,
        updated_at=MOMENT,
    )
    return serialize_node(kind, node, "", COMMUNITY)


def _lists(values: Mapping[str, Any]) -> Values:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
