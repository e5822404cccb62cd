"""JSON Schemas of requests and responses, generated from the declarations: records, inputs, pages, plans and problems."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, Final

from trellis.core.events import EVENT_LIST
from trellis.core.fields import Anything, Field, Permissions
from trellis.core.nodes import NodeKind
from trellis.core.operation import Operation
from trellis.core.verbs import Body, Response, Verb

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Return a reference to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def verb_of(operation: Operation) -> Verb:
    """Return the verb of an operation that is served over REST, which each of them has."""
    if operation.verb is None:
        raise LookupError(f"{operation.name} has no verb")
    return operation.verb


def schemas_of(operation: Operation) -> dict[str, Schema]:
    """Return the component schemas that an operation needs for its requests and responses over REST."""
    verb = verb_of(operation)
    taken = {} if verb.body is None else {input_component(operation): _input(operation, verb.body)}
    return _ANSWERED[verb.response](operation) | taken


def _records(operation: Operation) -> dict[str, Schema]:
    name, kind = component_of(operation), operation.kind
    if kind is not None:
        both = (*kind.permissions_field, *kind.response_fields)
        permissions = {_permissions_component(field, name): field.schema() for field in both if _is_permissions(field)}
        return {name: record(kind)} | permissions
    schemas = {name: build_object(operation.response_fields, name)}
    if operation.secret_once:
        once = {"type": "object", "properties": _properties(operation.secret_once, name)}
        schemas[f"New{name}"] = {"allOf": [ref(name), once]}
    return schemas


def _pages(operation: Operation) -> dict[str, Schema]:
    name = component_of(operation)
    title = operation.kind.title.lower() if operation.kind else operation.resource
    return _records(operation) | {f"{name}Page": _page(title, name)}


def _own_answers(operation: Operation) -> dict[str, Schema]:
    name = component_of(operation)
    schema = build_object(operation.response_fields, name)
    if operation.writes:
        schema["properties"]["dryRun"] = _DRY
    return {name: schema}


_ANSWERED: Final[Mapping[Response, Callable[[Operation], dict[str, Schema]]]] = {
    Response.RECORD: _records,
    Response.PAGE: _pages,
    Response.FEED: _own_answers,
    Response.ANSWER: _own_answers,
    Response.NULL: lambda _: {},
}
_OWN: Final = frozenset((Response.FEED, Response.ANSWER))  # schemas named after the operation, not after its record


def component_of(operation: Operation) -> str:
    """Return the name of an operation's response: its record (`Forum`, `Webhook`) or a form of its own (`CoreHello`)."""
    return capitals(operation.name if verb_of(operation).response in _OWN else operation.singular)


def input_component(operation: Operation) -> str:
    """Return the name of an operation's body: `ForumInput`, `ForumChanges`, `ForumCopyInput`, `EventsRestoreInput`."""
    verb, name = verb_of(operation), component_of(operation)
    if operation.path_field is not None:  # without the field in the path
        return name + capitals(verb.name)
    named = name if verb.response in _OWN or _takes_record(operation) else name + capitals(verb.name)
    return named + ("Changes" if verb.body is Body.CHANGES else "Input")


def _takes_record(operation: Operation) -> bool:
    """Return whether a body is a new record, or changes to any of its members; others have parameters of their own."""
    is_options = verb_of(operation).body is Body.OPTIONS
    return not is_options and (operation.kind is None or operation.fields == operation.kind.accepted)


def capitals(words: str) -> str:
    """Return words as the name of a component: `photo gallery` → `PhotoGallery`."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", words))


def record(kind: NodeKind) -> Schema:
    """Return the schema of a kind's record as it is returned."""
    schema: Schema = {"description": kind.doc} | build_object(kind.response_fields, capitals(kind.singular))
    schema["properties"] |= {field.name: _COUNT | {"description": field.doc} for field in kind.included}
    return schema


def build_object(fields: Iterable[Field], name: str) -> Schema:
    """Return the schema of an object that has all of these fields; `name` is the name of its component."""
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
    Body.CHANGES: "Changes to a {one}. Fields that are not sent keep their values.",
}


def _input(operation: Operation, body: Body) -> Schema:
    fields, name = body_fields(operation), component_of(operation)
    schema: Schema = {"type": "object"}
    if body in _BODIES and (verb_of(operation).response in _OWN or operation.path_field or _takes_record(operation)):
        schema["description"] = _BODIES[body].format(one=operation.singular)
    schema["properties"] = {field.name: _property(field, name, default=body is Body.NEW) for field in fields}
    schema["additionalProperties"] = False
    places = [field.name for field in operation.kind.placement if field in fields] if operation.kind else []
    places = [name for name in places if name != "parentId"]
    if places:
        both = [{"required": list(pair), "properties": {name: {} for name in pair}} for pair in combinations(places, 2)]
        schema["not"] = both[0] if len(both) == 1 else {"anyOf": both}
    needed = [field.name for field in fields if field.required]
    return schema | ({"required": needed} if body is Body.NEW and needed else {})


def writable(fields: Iterable[Field]) -> list[Field]:
    """Return the fields that are not ignored when sent."""
    return [field for field in fields if not field.read_only]


def takes_body(operation: Operation) -> bool:
    """Return whether the parameters of an operation are sent in a body."""
    return verb_of(operation).body is not None


def body_fields(operation: Operation) -> list[Field]:
    """Return the fields that are sent in a body."""
    fields = operation.fields if takes_body(operation) else ()
    return [field for field in writable(fields) if field != operation.path_field]


def query_fields(operation: Operation) -> list[Field]:
    """Return the fields that are sent in the query."""
    in_body = operation.fields if takes_body(operation) else ()
    return [field for field in writable(operation.takes) if field not in in_body and field != operation.path_field]


def _property(field: Field, name: str, *, default: bool = False) -> Schema:
    if field.type is EVENT_LIST:
        return {"type": "array", "items": ref("Event"), "description": described(field)}
    if _is_permissions(field):
        return {"allOf": [ref(_permissions_component(field, name))], "description": described(field)}
    schema = field.schema() | {"description": described(field)}
    if default and field.default not in (None, "") and not field.required:
        # In the text, since generators take the keyword `default` to mean that the member is always sent.
        schema["description"] += f" Default: `{json.dumps(field.default)}`."
    if field.example is not None:
        schema["examples"] = [field.example]
    if field.read_only:
        schema["readOnly"] = True
    if field.write_only:
        schema["writeOnly"] = True
    return schema


def _permissions_component(field: Field, name: str) -> str:
    return f"{name}Permissions" + ("Input" if getattr(field.type, "external", False) else "")


def _is_permissions(field: Field) -> bool:
    return isinstance(field.type, Permissions)


def described(field: Field) -> str:
    """Return a field's description, including its aliases."""
    also = " and ".join(f"`{name}`" for name in field.also)
    return f"{field.doc} Also accepted as {also}." if also and not field.read_only else field.doc


def parameter(field: Field) -> Schema:
    """Return a field as a query parameter, where nothing is null and lists are comma-separated text."""
    schema = dict(field.type.schema())
    example = field.example
    if isinstance(kinds := schema.get("type"), list):
        left = [kind for kind in kinds if kind != "null"]
        schema["type"] = left[0] if len(left) == 1 else left
    if schema.get("type") == "array":
        # Not an array with `explode: false`: generators ignore that, and send the name once for each element.
        whole = schema.get("items", {}).get("type") == "integer"
        schema = {"type": "string"} | ({"pattern": "^[1-9][0-9]*(,[1-9][0-9]*)*$"} if whole else {})
        example = None if example is None else ",".join(map(str, example))
    if isinstance(field.type, Anything):
        schema = {"type": "string"}
    if field.default is not None:
        schema["default"] = field.default
    written: Schema = {"name": field.name, "in": "query", "description": described(field), "schema": schema}
    if field.required:
        written["required"] = True
    if isinstance(field.type, Anything):
        written["deprecated"] = True
    return written if example is None else written | {"example": example}


_DRY: Final[Schema] = {"type": "boolean", "description": "True of a dry run, after which nothing has changed; otherwise left out."}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}


def _page(title: str, name: str) -> Schema:
    return {
        "type": "object",
        "description": f"One page of {title}.",
        "required": ["page", "perPage", "totalResults", "totalPages", "results"],
        "properties": {
            "page": {"type": "integer", "minimum": 1, "description": "The number of this page."},
            "perPage": {"type": "integer", "minimum": 1, "description": "The number of records per page."},
            "totalResults": _COUNT | {"description": "The number of records on all pages."},
            "totalPages": {"type": "integer", "minimum": 1, "description": "The number of pages; at least 1."},
            "results": {"type": "array", "items": ref(name), "description": "The records of this page."},
        },
    }
