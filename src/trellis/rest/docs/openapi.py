"""The OpenAPI 3.1 document, made from the catalogue and from the table of rest/http.py: it states no rule of its own."""

from collections.abc import Mapping
from typing import Any, Final

from trellis import __version__
from trellis.core.catalogue import Catalogue
from trellis.core.fields import MAX_ID
from trellis.core.nodes import NodeKind
from trellis.core.operation import Access, Operation
from trellis.core.verbs import Body
from trellis.http.routes import Route, build_routes
from trellis.rest.docs.examples import given_of, target_of
from trellis.rest.docs.responses import HEADERS, responses, shared_examples, shared_responses
from trellis.rest.docs.schemas import (
    DELETION_PLAN,
    FAULT,
    input_component,
    parameter,
    problem_schema,
    ref,
    schemas_of,
    writable,
)

Json = dict[str, Any]

_OWN: Final[Mapping[str, tuple[str, str]]] = {
    "core": ("Trellis", "About this service and the key that asks."),
    "events": ("Events", "What happened to the community, and how to take it back."),
    "webhooks": ("Webhooks", "Endpoints that are told of events."),
}
_DESCRIPTION: Final = """\
The structure of a community over REST: list, read, create, change, move and delete its nodes, with a key that may do just that.

Every path answers `OPTIONS` with its methods, and `HEAD` wherever it answers `GET`; a path with a trailing slash is the same path.
A path that is not listed here answers 404 `NO_ENDPOINT`, a method that a path does not have 405 `BAD_METHOD`. Refusals are
problem documents (RFC 9457) with an `errorCode` and an `errorMessage` that never change their meaning.

A person finds all this explained, with examples, at {base_url}/api/docs."""


def document(catalogue: Catalogue, base_url: str = "http://localhost:8000") -> Json:
    """Describe everything that REST serves at `base_url`, the address of the service without `/api`."""
    served = build_routes(catalogue)
    operations = [route.operation for route in served]
    kinds = list({operation.kind.name: operation.kind for operation in operations if operation.kind}.values())
    own = [operation for operation in operations if operation.kind is None]
    paths: Json = {}
    for route in served:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, base_url)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trellis",
            "summary": "The structure of a community over REST.",
            "description": _DESCRIPTION.format(base_url=base_url),
            "version": __version__,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": f"{base_url}/api"}],
        "externalDocs": {"description": "The reference, for people.", "url": f"{base_url}/api/docs"},
        "security": [{name: []} for name in _SECURITY],
        "tags": _tags(kinds, own),
        "x-tagGroups": _tag_groups(kinds, own),
        "paths": paths,
        "components": {
            "schemas": _schemas(operations, base_url),
            "responses": shared_responses(operations, base_url),
            "examples": shared_examples(operations, base_url),
            "parameters": _PARAMETERS,
            "headers": dict(HEADERS),
            "securitySchemes": _SECURITY,
        },
    }


def own_tag(operation: Operation) -> tuple[str, str]:
    """Give the heading of an operation that is not about nodes, and what there is under it."""
    return _OWN[operation.resource]


def _tags(kinds: list[NodeKind], own: list[Operation]) -> list[Json]:
    tags: list[Json] = [{"name": kind.title, "description": kind.doc, "x-application": kind.application} for kind in kinds]
    return tags + [{"name": tag, "description": f"{doc} Not among the 4.2 endpoints."} for tag, doc in _own_tags(own).items()]


def _own_tags(own: list[Operation]) -> dict[str, str]:
    return dict(own_tag(operation) for operation in own)


def _tag_groups(kinds: list[NodeKind], own: list[Operation]) -> list[Json]:
    applications = dict.fromkeys(kind.application for kind in kinds)
    groups = [{"name": name, "tags": [kind.title for kind in kinds if kind.application == name]} for name in applications]
    return groups + ([{"name": "Ours", "tags": list(_own_tags(own))}] if own else [])


def _schemas(operations: list[Operation], base_url: str) -> Json:
    schemas: Json = {}
    for operation in sorted(operations, key=lambda operation: operation.kind is None):
        schemas |= schemas_of(operation)
    return schemas | {"DeletionPlan": DELETION_PLAN, "Problem": problem_schema(base_url), "Fault": FAULT}


# --- one operation ------------------------------------------------------------------------------------------------


def _operation(route: Route, base_url: str) -> Json:
    operation = route.operation
    written: Json = {
        "operationId": operation.name,
        "tags": [operation.kind.title if operation.kind else own_tag(operation)[0]],
        "summary": operation.summary,
        "description": _described(route),
        "externalDocs": {"url": f"{base_url}/api/docs#{operation.name}"},
        "x-required-grant": operation.name if operation.access is Access.GRANTED else None,
        **({"x-required-grant-one-of": list(operation.fork.to)} if operation.fork else {}),
        "parameters": _parameters(operation),
    }
    if route.also:
        written["x-also-served-at"] = list(route.also)
    if takes_body(operation):
        written["requestBody"] = _body(operation)
    return written | {"responses": responses(route, base_url)}


def _described(route: Route) -> str:
    operation = route.operation
    lines = [operation.doc]
    if operation.access is Access.GRANTED:
        lines.append(f"Needs the grant `{operation.name}`.")
    elif operation.access is Access.ANY_KEY:
        lines.append("Every valid key may do this.")
    if route.also:
        lines.append("Also served at " + " and ".join(f"`{path}`" for path in route.also) + ".")
    if takes_body(operation) and any(field.read_only for field in operation.fields):
        lines.append("Read-only members of the record are taken and passed over, so that what was read can be sent back as it is.")
    return "\n\n".join(lines)


def takes_body(operation: Operation) -> bool:
    """Say whether what an operation takes is sent in a body."""
    return operation.verb is not None and operation.verb.body is not None


def _parameters(operation: Operation) -> list[Json]:
    in_body = operation.fields if takes_body(operation) else ()
    query = [parameter(field) for field in operation.takes if field not in in_body and not field.read_only]
    return [*_id(operation), *query, *({"$ref": f"#/components/parameters/{name}"} for name in headers_taken(operation))]


def _id(operation: Operation) -> list[Json]:
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


def headers_taken(operation: Operation) -> tuple[str, ...]:
    """Name the headers that an operation looks at, beside those that carry the key and describe the body."""
    verb = operation.verb
    if verb is None or not verb.writes:
        return ("If-None-Match", "X-Request-Id")
    asked = {"Idempotency-Key": verb.idempotency_key, "If-Match": verb.if_match}
    return (*(name for name, is_asked in asked.items() if is_asked), "X-Audit-Log-Reason", "X-Request-Id")


def _body(operation: Operation) -> Json:
    name = input_component(operation)
    examples = {"example": {"summary": operation.summary, "value": given_of(operation)}}
    nested = [field.name for field in writable(operation.fields) if field.type.schema().get("type") in ("array", "object")]
    form: Json = {"schema": {"allOf": [ref(name), {"type": "object", "description": _FORM}]}, "examples": examples}
    if nested:
        form["encoding"] = {field: {"contentType": "application/json"} for field in nested}
    content = {"application/json": {"schema": ref(name), "examples": examples}, **dict.fromkeys(_FORMS, form)}
    return {"required": operation.verb is not None and operation.verb.body is not Body.OPTIONS, "content": content}


_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_FORM: Final = "A form. What is nested is text of JSON, or written in brackets: `permissions[view]=*`, `permissions[add][0]=3`."

_PARAMETERS: Final[Json] = {
    "If-None-Match": {
        "description": "The `ETag` of the answer that you have. If it is still good, the answer is 304 without a body.",
        "schema": {"type": "string"},
    },
    "If-Match": {
        "description": "The `ETag` of the record that you read. If it has changed since, the answer is 412 and nothing is done.",
        "schema": {"type": "string"},
    },
    "Idempotency-Key": {
        "description": "A value of your own, such as a UUID. The same request, sent within 24 hours, gets the first answer again.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    },
    "X-Audit-Log-Reason": {
        "description": "Why you do this; kept in the event log.",
        "schema": {"type": "string", "maxLength": 500},
    },
    "X-Request-Id": {
        "description": "An id of your own for this request, up to 128 letters, digits and `._~+/=:-`; another one is passed over. "
        "It comes back in the answer and stands in the log and in events.",
        "schema": {"type": "string"},
    },
}
for _name, _parameter in _PARAMETERS.items():
    _parameter |= {"name": _name, "in": "header"}

_SECURITY: Final[Json] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer KEY`"},
    "basic": {"type": "http", "scheme": "basic", "description": "The key as the user name, with an empty password."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "`X-API-Key: KEY`"},
}
