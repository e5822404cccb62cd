"""JSON Schemas of what comes and goes, made from the declarations: records, inputs, pages, plans and problems."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, Final

from trellis.core.fields import MAX_ID, Anything, Field, Permissions
from trellis.core.nodes import NodeKind
from trellis.core.operation import Operation
from trellis.core.verbs import Body, Response
from trellis.refusals import REFUSALS, Member

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Point to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas_of(operation: Operation) -> dict[str, Schema]:
    """Give every component schema that an operation over REST needs: of what it answers, and of what it takes."""
    verb = operation.verb
    if verb is None:
        return {}
    taken = {} if verb.body is None else {input_component(operation): _input(operation, verb.body)}
    return _ANSWERED[verb.response](operation) | taken


def _records(operation: Operation) -> dict[str, Schema]:
    name, kind = component_of(operation), operation.kind
    if kind is not None:
        permissions = {f"{name}Permissions": field.schema() for field in kind.permissions_field if _is_permissions(field)}
        return {name: record(kind)} | permissions
    schemas = {name: _object(operation.answers, name)}
    if operation.once:
        once = {"type": "object", "properties": _properties(operation.once, name)}
        schemas[f"New{name}"] = {"allOf": [ref(name), once]}
    return schemas


def _pages(operation: Operation) -> dict[str, Schema]:
    name = component_of(operation)
    title = operation.kind.title.lower() if operation.kind else operation.resource
    return _records(operation) | {f"{name}Page": _page(title, name)}


def _own_answers(operation: Operation) -> dict[str, Schema]:
    name = component_of(operation)
    return {name: _object(operation.answers, name)}


_ANSWERED: Final[Mapping[Response, Callable[[Operation], dict[str, Schema]]]] = {
    Response.RECORD: _records,
    Response.PAGE: _pages,
    Response.FEED: _own_answers,
    Response.ANSWER: _own_answers,
    Response.NULL: lambda _: {},
}
_OWN: Final = frozenset((Response.FEED, Response.ANSWER))  # what stands under the operation's name, not under its record's


def component_of(operation: Operation) -> str:
    """Name what an operation answers: the record (`Forum`, `Webhook`), or an answer of its own (`CoreHello`)."""
    if operation.verb is not None and operation.verb.response in _OWN:
        return _capitals(operation.name)
    return _capitals(operation.singular)


def input_component(operation: Operation) -> str:
    """Name what the body of an operation holds: `ForumInput`, `ForumChanges`, `EventsRestoreInput`."""
    verb, name = operation.verb, component_of(operation)
    if verb is None or verb.body is not Body.OPTIONS:
        return name + ("Changes" if verb is not None and verb.body is Body.CHANGES else "Input")
    return name + ("" if verb.response in _OWN else verb.name.capitalize()) + "Input"


def _capitals(words: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", words))


def record(kind: NodeKind) -> Schema:
    """Give the schema of a kind's record as it is answered."""
    return {"description": kind.doc} | _object(kind.answered, _capitals(kind.singular))


def _object(fields: Iterable[Field], name: str) -> Schema:
    fields = tuple(fields)
    return {
        "type": "object",
        "required": [field.name for field in fields],
        "properties": _properties(fields, name),
    }


def _properties(fields: Iterable[Field], name: str) -> dict[str, Schema]:
    return {field.name: _property(field, name) for field in fields}


_BODIES: Final[Mapping[Body, str]] = {
    Body.NEW: "A new {one}.",
    Body.CHANGES: "What is to change of a {one}; what is not sent stays as it is.",
}


def _input(operation: Operation, body: Body) -> Schema:
    fields, name = writable(operation.fields), component_of(operation)
    schema: Schema = {"type": "object"}
    if body in _BODIES:
        schema["description"] = _BODIES[body].format(one=operation.singular)
    schema["properties"] = {field.name: _property(field, name, default=body is Body.NEW) for field in fields}
    schema["additionalProperties"] = False
    places = [field.name for field in operation.kind.placement if field in fields] if operation.kind else []
    places = [name for name in places if name != "parentId"]
    if places:
        schema["not"] = {"anyOf": [{"required": list(pair)} for pair in combinations(places, 2)]}
    needed = [field.name for field in fields if field.required]
    return schema | ({"required": needed} if body is Body.NEW and needed else {})


def writable(fields: Iterable[Field]) -> list[Field]:
    """Leave out the fields that are passed over when they are sent."""
    return [field for field in fields if not field.read_only]


def _property(field: Field, name: str, *, default: bool = False) -> Schema:
    if _is_permissions(field):
        return {"allOf": [ref(f"{name}Permissions")], "description": described(field)}
    schema = field.schema() | {"description": described(field)}
    if default and field.default not in (None, "") and not field.required:
        # In words: generators take the keyword `default` to mean that the member is always sent.
        schema["description"] += f" Without it: `{json.dumps(field.default)}`."
    if field.example is not None:
        schema["examples"] = [field.example]
    if field.read_only:
        schema["readOnly"] = True
    if field.write_only:
        schema["writeOnly"] = True
    return schema


def _is_permissions(field: Field) -> bool:
    return isinstance(field.type, Permissions)


def described(field: Field) -> str:
    """Give a field's description, with the other names under which it is accepted."""
    also = " and ".join(f"`{name}`" for name in field.also)
    return f"{field.doc} Also accepted as {also}." if also and not field.read_only else field.doc


def parameter(field: Field) -> Schema:
    """Give a field as a parameter of the query string, where nothing is null and a list is text with commas."""
    schema = dict(field.type.schema())
    example = field.example
    if isinstance(kinds := schema.get("type"), list):
        left = [kind for kind in kinds if kind != "null"]
        schema["type"] = left[0] if len(left) == 1 else left
    if schema.get("type") == "array":
        # Not as an array with `explode: false`: generators pass over that, and send the name once for each element.
        whole = schema.get("items", {}).get("type") == "integer"
        schema = {"type": "string"} | ({"pattern": "^[1-9][0-9]*(,[1-9][0-9]*)*$"} if whole else {})
        example = None if example is None else ",".join(map(str, example))
    if isinstance(field.type, Anything):
        schema = {"type": "string"}
    if field.default is not None:
        schema["default"] = field.default
    written: Schema = {"name": field.name, "in": "query", "description": described(field), "schema": schema}
    if isinstance(field.type, Anything):
        written["deprecated"] = True
    return written if example is None else written | {"example": example}


_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_ID: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
_IDS: Final[Schema] = {"type": "array", "items": _ID}


def _page(title: str, name: str) -> Schema:
    return {
        "type": "object",
        "description": f"One page of {title}.",
        "required": ["page", "perPage", "totalResults", "totalPages", "results"],
        "properties": {
            "page": {"type": "integer", "minimum": 1, "description": "Which page this is."},
            "perPage": {"type": "integer", "minimum": 1, "description": "How many records a page holds."},
            "totalResults": _COUNT | {"description": "How many records there are on all pages."},
            "totalPages": {"type": "integer", "minimum": 1, "description": "How many pages there are; at least 1."},
            "results": {"type": "array", "items": ref(name), "description": "The records of this page."},
        },
    }


DELETION_PLAN: Final[Schema] = {
    "type": "object",
    "description": "What a delete would do: the answer of a dry run. Long lists of ids are cut at 1,000; the counts are of all.",
    "required": ["dryRun", "deleted", "moved", "changed"],
    "properties": {
        "dryRun": {"type": "boolean", "description": "Always true: nothing was changed."},
        "deleted": {
            "type": "object",
            "description": "What would be deleted: the record, and everything below it unless that is moved.",
            "required": ["count", "ids"],
            "properties": {"count": _COUNT, "ids": _IDS},
        },
        "moved": {
            "type": "object",
            "description": "Which children would move, and where to.",
            "required": ["count", "ids", "to"],
            "properties": {"count": _COUNT, "ids": _IDS, "to": _ID | {"type": ["integer", "null"]}},
        },
        "changed": {
            "type": "object",
            "description": "Which other records would change, because they name the deleted one in their permissions.",
            "required": ["count", "nodes"],
            "properties": {
                "count": _COUNT,
                "nodes": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["resource", "id"],
                        "properties": {"resource": {"type": "string"}, "id": _ID},
                    },
                },
            },
        },
    },
}


def problem_schema(base_url: str) -> Schema:
    """Give the schema of a refusal: RFC 9457's members, the 4.2 pair, and what a program may want to know."""
    return {
        "type": "object",
        "description": "A refusal (RFC 9457). `errorCode` and `errorMessage` never change their meaning.",
        "required": ["type", "title", "status", "detail", "errorCode", "errorMessage", "requestId"],
        "properties": {
            "type": {
                "type": "string",
                "format": "uri",
                "description": "Where this refusal is explained.",
                "examples": [f"{base_url}/api/docs#NO_TITLE"],
            },
            "title": {"type": "string", "description": "The refusal in a few words, always the same ones."},
            "status": {
                "type": "integer",
                "enum": sorted({refusal.status for refusal in REFUSALS.values()}),
                "description": "The HTTP status.",
            },
            "detail": {"type": "string", "description": "What was wrong here, where, and what to do."},
            "errorCode": {"type": "string", "description": "The refusal's code.", "examples": ["1F363/2"]},
            "errorMessage": {"type": "string", "enum": list(REFUSALS), "description": "The refusal's name."},
            "requestId": {
                "type": "string",
                "description": "The request's id, as in `X-Request-Id`, the log and the events.",
            },
            "errors": {
                "type": "array",
                "items": ref("Fault"),
                "description": "Every field at fault, not only the first.",
            },
            **_members(),
        },
    }


def _members() -> dict[str, Schema]:
    """Give the schemas of the members that single refusals add, each with the refusals that do."""
    found: dict[str, tuple[Member, list[str]]] = {}
    for refusal in REFUSALS.values():
        for member in refusal.members:
            found.setdefault(member.name, (member, []))[1].append(refusal.message)
    return {
        name: {**member.schema, "description": f"With {' and '.join(messages)}: {member.doc}"}
        for name, (member, messages) in found.items()
    }


FAULT: Final[Schema] = {
    "type": "object",
    "description": "What is wrong with one field.",
    "required": ["field", "code", "errorCode", "message"],
    "properties": {
        "field": {
            "type": "string",
            "description": "The field's name; `permissions.view` is a member of `permissions`.",
        },
        "code": {"type": "string", "enum": list(REFUSALS), "description": "What is wrong, as in `errorMessage`."},
        "errorCode": {"type": "string", "description": "The code of it, as in `errorCode`."},
        "message": {"type": "string", "description": "What is wrong, in a sentence."},
    },
}
