"""JSON Schemas of tools, in few tokens: a model reads all of them every time, and a refusal explains what they leave out."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trellis.core.fields import Anything, Boolean, Field, Permissions
from trellis.core.operation import DRY_RUN, Operation
from trellis.core.paging import serialize_page
from trellis.core.verbs import Response

Schema = dict[str, Any]

_KEPT: Final = ("type", "enum", "properties", "required", "items")
_TELLING: Final = 1000  # larger bounds of a number say nothing about its meaning
_CLAUSE: Final = re.compile(r"[.;:,](?= |$)| \(")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+")
_IDLE: Final = frozenset(("a", "an", "and", "by", "id", "ids", "is", "it", "its", "number", "of", "only", "or", "records")) | {
    *("that", "the", "these", "this", "to", "what", "which", "whether", "with"),
}
_ID: Final[Schema] = {"type": "integer"}


def build_input_schema(operation: Operation, known: Iterable[Field] = ()) -> Schema:
    """Return the schema of a tool's arguments, without the fields that are `known` from other tools."""
    fields = [field for field in operation.takes if is_offered(field) and (field not in known or field == DRY_RUN)]
    properties = {"id": _ID} if operation.has_target else {}
    properties |= {field.name: _build_property(operation, field) for field in fields}
    needed = [*(["id"] if operation.has_target else []), *(f.name for f in fields if _is_needed(operation, f))]
    return {"type": "object"} | ({"properties": properties} if properties else {}) | ({"required": needed} if needed else {})


def build_output_schema(operation: Operation) -> Schema | None:
    """Return the schema of a tool's structured content; None if the tool has no such schema.

    The schema names the members of the answer, or of the page for lists. Tools that write have none: a delete returns null, which
    is not structured content, any other may return a proposal, and a schema of both would take too many tokens. Tools that may
    return text have none either, nor do tools that are in every list.
    """
    verb = operation.verb
    in_each = operation.access.is_open and not operation.access.for_proposers
    if verb is None or operation.writes or operation.text_type or in_each:
        return None
    members = _MEMBERS.get(verb.response, _list_own_members)(operation)
    return {"type": "object", "required": members} if members else None


def _list_own_members(operation: Operation) -> list[str]:
    return [field.name for field in operation.response_fields]


_MEMBERS: Final[Mapping[Response, Callable[[Operation], list[str]]]] = {
    Response.RECORD: lambda one: [field.name for field in (one if one.kind is None else one.kind).response_fields],
    Response.PAGE: lambda _: list(serialize_page([], 0, 1, 1)),
}


def is_offered(field: Field) -> bool:
    """Return whether a tool lists a field."""
    return field.for_agents and not field.read_only and not isinstance(field.type, Anything)


def _is_needed(operation: Operation, field: Field) -> bool:
    return field.required and (not operation.changes or field == operation.path_field)


def _build_property(operation: Operation, field: Field) -> Schema:
    if isinstance(field.type, Permissions):
        return {"type": "object", "description": f'{", ".join(field.type.options)}: "*" or group ids'}
    schema, text = _shorten(field.type.schema()), summarize_field(field, operation.singular)
    return schema | {"description": text} if text else schema


def summarize_field(field: Field, singular: str) -> str:
    """Return a short description of a field: its brief, or the beginning of its text; "" if that says no more than the name."""
    if field.brief is not None or isinstance(field.type, Boolean):
        return field.brief or ""
    text = _CLAUSE.split(field.doc, maxsplit=1)[0]
    known = [word.lower() for word in _WORD.findall(field.name)]
    told = [word for word in _WORD.findall(text.lower()) if word not in _IDLE and word.removesuffix("s") not in singular]
    return text if any(not any(word.startswith(one) or one.startswith(word) for one in known) for word in told) else ""


def _shorten(schema: Mapping[str, Any]) -> Schema:
    """Return a schema without what a refusal explains when needed: patterns, lengths and bounds that say nothing."""
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return {"type": _join(_shorten(one) for one in schema[several])}
    short = {name: schema[name] for name in _KEPT if name in schema}
    if "properties" in short:
        short["properties"] = {name: _shorten(one) for name, one in short["properties"].items()}
    if "items" in short:
        short["items"] = _shorten(short["items"])
    if "enum" in short:
        short.pop("type", None)
    if schema.get("maximum", _TELLING) < _TELLING:
        short |= {name: schema[name] for name in ("minimum", "maximum")}
    return short


def _join(schemas: Iterable[Schema]) -> list[str]:
    names: dict[str, None] = {}
    for schema in schemas:
        kind = schema.get("type", "string")
        names |= dict.fromkeys([kind] if isinstance(kind, str) else kind)
    return list(names)
