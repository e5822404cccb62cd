"""The OpenAPI 3.1 document, generated from the catalogue and the tables of verbs and refusals. It adds no rules of its own."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from trellis import __version__
from trellis.core.catalogue import Catalogue
from trellis.core.fields import MAX_ID
from trellis.core.nodes import NodeKind
from trellis.core.operation import Basis, Operation
from trellis.core.verbs import Body
from trellis.http.routes import REFERENCE, Route, build_routes, find_in_reference
from trellis.rest.docs.components import load_components
from trellis.rest.docs.dialect_schemas import build_dialect_schemas, describe_dialect_errors, describe_dialects
from trellis.rest.docs.events import build_event_schemas, build_webhooks
from trellis.rest.docs.examples import given_of, target_of
from trellis.rest.docs.responses import responses, shared_examples, shared_responses
from trellis.rest.docs.schemas import (
    body_fields,
    input_component,
    parameter,
    query_fields,
    ref,
    schemas_of,
    takes_body,
    verb_of,
)

Json = dict[str, Any]

_OWN: Final[Mapping[str, tuple[str, str]]] = {
    "core": ("Trellis", "About this service and your key."),
    "events": ("Events", "The log of changes to the community, and how to undo them."),
    "structure": ("Structure", "The structure of the community as one document: exported, planned and applied."),
    "changesets": ("Change sets", "Events that belong together, and how they are undone together."),
    "proposals": (
        "Proposals",
        "Calls of keys that may only propose them, until somebody approves or rejects them.",
    ),
    "access": ("Access", "Who may do what."),
    "webhooks": ("Webhooks", "Endpoints that receive messages about events."),
}
_ADDED: Final = "Specific to Trellis: not one of the node endpoints of Invision Community 4.2 that it implements."
_DESCRIPTION: Final = """\
The structure of a community over REST: list, read, create, change, move and delete its nodes, with a key that allows exactly what
it is meant to.

Every path supports `OPTIONS`, which lists its methods, and `HEAD` wherever it supports `GET`. A trailing slash makes no difference.
A path that is not listed here returns 404 `NO_ENDPOINT`, a method that a path does not support 405 `BAD_METHOD`. Errors are
problem documents (RFC 9457) with an `errorCode` and an `errorMessage` that never change their meaning.

A key may have another dialect than this one, for clients of another product: `x-dialects` of an operation names the records that it
gets in each, and `x-dialects` of this document the errors.

The reference for people, with examples, is at {base_url}{reference}."""


def document(catalogue: Catalogue, base_url: str = "http://localhost:8000") -> Json:
    """Describe everything that REST serves at `base_url`, the address of the service without `/api`."""
    served = build_routes(catalogue)
    operations = [route.operation for route in served]
    kinds = list({operation.kind.name: operation.kind for operation in operations if operation.kind}.values())
    own = [operation for operation in operations if operation.kind is None]
    shared, components = shared_responses(operations, base_url), load_components()
    paths: Json = {}
    for route in served:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, base_url, shared)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trellis",
            "summary": "The structure of a community over REST.",
            "description": _DESCRIPTION.format(base_url=base_url, reference=REFERENCE),
            "version": __version__,
            "contact": {"name": "Trellis", "url": f"{base_url}{REFERENCE}"},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": f"{base_url}/api"}],
        "externalDocs": {"description": "The reference, for people.", "url": f"{base_url}{REFERENCE}"},
        "security": [{name: []} for name in components["securitySchemes"]],
        "tags": _tags(kinds, own),
        "x-tagGroups": _tag_groups(kinds, own),
        "x-dialects": describe_dialect_errors(operations),
        "paths": paths,
        "webhooks": build_webhooks(catalogue),
        "components": {
            "schemas": _schemas(operations, base_url) | build_event_schemas(catalogue),
            "responses": shared,
            "examples": shared_examples(operations, base_url),
            **{name: components[name] for name in ("parameters", "headers", "securitySchemes")},
        },
    }


def own_tag(operation: Operation) -> tuple[str, str]:
    """Return the heading of an operation that is not about nodes, and its description."""
    title, doc = _OWN[operation.resource]
    return title, f"{doc} {_ADDED}"


def _tags(kinds: list[NodeKind], own: list[Operation]) -> list[Json]:
    tags: list[Json] = [{"name": str(kind.title), "description": kind.doc, "x-application": kind.application} for kind in kinds]
    return tags + [{"name": tag, "description": doc} for tag, doc in _own_tags(own).items()]


def _own_tags(own: list[Operation]) -> dict[str, str]:
    return dict(own_tag(operation) for operation in own)


def _tag_groups(kinds: list[NodeKind], own: list[Operation]) -> list[Json]:
    applications = dict.fromkeys(kind.application for kind in kinds)
    groups = [{"name": name, "tags": [str(kind.title) for kind in kinds if kind.application == name]} for name in applications]
    return groups + ([{"name": "Trellis", "tags": list(_own_tags(own))}] if own else [])


def _schemas(operations: list[Operation], base_url: str) -> Json:
    schemas: Json = {}
    for operation in sorted(operations, key=lambda operation: operation.kind is None):
        for name, schema in schemas_of(operation).items():
            if schemas.setdefault(name, schema) != schema:
                raise ValueError(f"the schema {name} of {operation.name} is already that of another operation, and different")
    fixed = deepcopy(load_components()["schemas"])
    fixed["Problem"]["properties"]["type"]["examples"] = [f"{base_url}{REFERENCE}#NO_TITLE"]
    return schemas | build_dialect_schemas(operations) | fixed


# --- one operation ------------------------------------------------------------------------------------------------


def _operation(route: Route, base_url: str, shared: Json) -> Json:
    operation = route.operation
    written: Json = {
        "operationId": operation.name,
        "tags": [str(operation.kind.title) if operation.kind else own_tag(operation)[0]],
        "summary": operation.summary,
        "description": _described(route),
        "externalDocs": {"url": f"{base_url}{find_in_reference(operation)}"},
        "x-required-grant": operation.name if operation.is_grantable else None,
        **({"x-required-grants": list(operation.access.needs)} if operation.access.needs else {}),
        **({"x-required-grant-one-of": list(operation.fork.to)} if operation.fork else {}),
        "parameters": _parameters(operation),
    }
    if route.also:
        written["x-also-served-at"] = list(route.also)
    if dialects := describe_dialects(operation):
        written["x-dialects"] = dialects
    if takes_body(operation):
        written["requestBody"] = _body(operation)
    return written | {"responses": responses(route, base_url, shared)}


def _described(route: Route) -> str:
    operation = route.operation
    lines = [operation.doc]
    if operation.is_grantable or operation.access.needs:
        needed = [f"`{name}`" for name in operation.needed]
        lines.append(f"Needs the grant{'s' * (len(needed) > 1)} {' and '.join(needed)}.")
    elif operation.access.basis is Basis.INNER:
        lines.append("Every valid key may do this; each operation that it runs needs its own grant.")
    elif operation.access.basis is Basis.ANY_KEY:
        lines.append("Every valid key may run it.")
    if route.also:
        lines.append("Also served at " + " and ".join(f"`{path}`" for path in route.also) + ".")
    if takes_body(operation) and any(field.read_only for field in operation.fields):
        lines.append(
            "Read-only members of the record are accepted and ignored, so a record that was read can be sent back unchanged."
        )
    return "\n\n".join(lines)


def _parameters(operation: Operation) -> list[Json]:
    query = map(parameter, query_fields(operation))
    return [*_id(operation), *query, *({"$ref": f"#/components/parameters/{name}"} for name in request_headers_of(operation))]


def _id(operation: Operation) -> list[Json]:
    if (named := operation.path_field) is not None:
        schema, example = named.type.schema() | {"type": "string"}, named.example
        return [
            {"name": named.name, "in": "path", "required": True, "description": named.doc, "schema": schema, "example": example}
        ]
    if not operation.has_target:
        return []
    schema = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
    return [
        {
            "name": "id",
            "in": "path",
            "required": True,
            "description": f"The {operation.singular}'s id.",
            "schema": schema,
            "example": target_of(operation),
        }
    ]


def request_headers_of(operation: Operation) -> tuple[str, ...]:
    """Return the request headers that an operation uses, besides those for the key and the body."""
    verb = verb_of(operation)
    if not verb.writes:
        return ("If-None-Match", "X-Request-Id")
    asked = {"Idempotency-Key": verb.idempotency_key, "If-Match": verb.if_match}
    return (*(name for name, is_asked in asked.items() if is_asked), "Change-Set", "X-Audit-Log-Reason", "X-Request-Id")


def _body(operation: Operation) -> Json:
    name = input_component(operation)
    examples = {"example": {"summary": operation.summary, "value": given_of(operation)}}
    nested = [field.name for field in body_fields(operation) if field.type.schema().get("type") in ("array", "object")]
    form: Json = {"schema": {"allOf": [ref(name), {"type": "object", "description": _FORM}]}, "examples": examples}
    if nested:
        form["encoding"] = {field: {"contentType": "application/json"} for field in nested}
    content = {"application/json": {"schema": ref(name), "examples": examples}, **dict.fromkeys(_FORMS, form)}
    return {"required": verb_of(operation).body is not Body.OPTIONS, "content": content}


_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_FORM: Final = "A form. Nested values are written as JSON text or with brackets: `permissions[view]=*`, `permissions[add][0]=3`."
