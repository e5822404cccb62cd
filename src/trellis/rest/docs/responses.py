"""The responses of each operation in OpenAPI form: successes and refusals, with their headers and examples."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from itertools import groupby
from typing import Any, Final

import orjson

from trellis.core.operation import Operation
from trellis.core.verbs import Response, Verb
from trellis.errors import Refused
from trellis.http.problems import format_problem
from trellis.http.routes import Route
from trellis.rest.docs.components import REQUEST_ID
from trellis.rest.docs.examples import answer_of, plan_of
from trellis.rest.docs.refusals import is_shared, refusals_of
from trellis.rest.docs.schemas import Schema, component_of, ref, verb_of

Json = dict[str, Any]

# Python's own phrases for these two differ between its versions.
STATUS_TEXT: Final[Mapping[int, str]] = {one.value: one.phrase for one in HTTPStatus} | {
    413: "Content Too Large",
    422: "Unprocessable Content",
}

_STRING: Final = {"type": "string"}
_PROPOSALS: Final = "proposals"
_PROPOSAL_HEADERS: Final = ("ETag", "Location", "Event", "Idempotent-Replayed")
_LIMITS: Final = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def headers_of(*names: str) -> Json:
    """Return references to these component headers and to the one that every response has."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*names, "X-Request-Id")}


def responses(route: Route, base_url: str, shared: Json) -> Json:
    """Return every response of a route by status. Those that are the same as one of `shared_responses` refer to it."""
    found = _successes(route)
    for status, refusals in _by_status(refusals_of(route.operation)):
        response = _refusal(status, refusals, base_url)
        name = _name(status)
        found[str(status)] = {"$ref": f"#/components/responses/{name}"} if response == shared.get(name) else response
    return found


def shared_responses(operations: Iterable[Operation], base_url: str) -> Json:
    """Return the proposal, and of each status the first refusals with nothing of their operation in them, by name."""
    found: Json = {}
    operations = tuple(operations)
    for operation in operations:
        if operation.resource == _PROPOSALS and verb_of(operation).response is Response.RECORD:
            description = "The key may only propose this. Nothing was changed; this is the proposal, which somebody has to approve."
            headers = (*_PROPOSAL_HEADERS, *_LIMITS)
            example = {"answer": {"summary": "The proposal", "value": answer_of(operation)}}
            found.setdefault(_name(202), _success(operation, description, headers, example))
    for operation in operations:
        for status, refusals in _by_status(refusals_of(operation)):
            if all(map(is_shared, refusals)):
                found.setdefault(_name(status), _refusal(status, refusals, base_url))
    return found


def _name(status: int) -> str:
    return STATUS_TEXT[status].replace(" ", "")


def _by_status(refusals: Iterable[Refused]) -> list[tuple[int, list[Refused]]]:
    return [(status, list(group)) for status, group in groupby(refusals, key=lambda refused: refused.status)]


def _refusal(status: int, refusals: list[Refused], base_url: str) -> Json:
    lines = [f"- `{r.code}` `{r.message}`: {r.refusal.when}" for r in refusals]
    brought = dict.fromkeys(name for refused in refusals for name in refused.refusal.headers)
    limits = () if "WWW-Authenticate" in brought else _LIMITS  # requests are counted only once the key is known
    return {
        "description": "\n".join((f"{STATUS_TEXT[status]}.", "", *lines)),
        "headers": headers_of(*brought, *limits),
        "content": {
            "application/problem+json": {
                "schema": ref("Problem"),
                "examples": {r.message: _example(r, base_url) for r in refusals},
            }
        },
        "x-errors": [{"errorCode": r.code, "errorMessage": r.message} for r in refusals],
    }


def _example(refused: Refused, base_url: str) -> Json:
    if is_shared(refused):
        return {"$ref": f"#/components/examples/{refused.message}"}
    return {"summary": refused.refusal.title, "value": problem_of(refused, base_url)}


def shared_examples(operations: Iterable[Operation], base_url: str) -> Json:
    """Return the problem documents that are the same for all operations, by message."""
    refusals = {refused.message: refused for operation in operations for refused in filter(is_shared, refusals_of(operation))}
    return {name: {"summary": r.refusal.title, "value": problem_of(r, base_url)} for name, r in sorted(refusals.items())}


def problem_of(refused: Refused, base_url: str) -> Json:
    """Return the problem document of a refusal."""
    written: Json = orjson.loads(format_problem(refused, base_url, REQUEST_ID))
    return written


# --- successes ----------------------------------------------------------------------------------------------------


def answer_schema(operation: Operation) -> Schema:
    """Return a reference to the schema of an operation's response."""
    response = verb_of(operation).response
    if response is Response.NULL:
        return {"oneOf": [{"type": "null"}, ref("DeletionPlan")]}
    name = component_of(operation)
    return ref(f"{name}Page" if response is Response.PAGE else f"New{name}" if operation.secret_once else name)


def _headers(verb: Verb, status: int) -> tuple[str, ...]:
    """Return the headers of a success, besides those of every response."""
    carried = {
        "ETag": verb.etag,
        "Link": verb.links in {Response.PAGE, Response.FEED},
        "Next": verb.response is Response.FEED,
        "Location": verb.creates,
        "Event": verb.writes,
        "Change-Set-Id": verb.writes,
        "Idempotent-Replayed": verb.idempotency_key,
        "Dry-Run": verb.writes and status == 200,
    }
    return tuple(name for name, is_carried in carried.items() if is_carried)


def _successes(route: Route) -> Json:
    operation = route.operation
    examples = {"answer": {"summary": "The response", "value": answer_of(operation)}}
    dry = {"dryRun": {"summary": "The response to a dry run", "value": plan_of(operation)}}
    if operation.writes and route.status == 200:
        examples |= dry
    headers = (*_headers(route.verb, route.status), *_LIMITS)
    found = {str(route.status): _success(operation, route.verb.answer, headers, examples)}
    if operation.writes and route.status != 200:
        description = "The response to a dry run: the record that would have been created."
        found["200"] = _success(operation, description, ("Dry-Run", *_LIMITS), dry)
    if route.verb.may_create:
        new = ("ETag", "Location", "Event", "Change-Set-Id", *_LIMITS)
        found["201"] = _success(operation, "The new record.", new, {"answer": examples["answer"]})
    if operation.is_proposable:
        found["202"] = {"$ref": f"#/components/responses/{_name(202)}"}
    if not operation.writes:
        found["304"] = {
            "description": "Nothing has changed: `If-None-Match` names this version.",
            "headers": headers_of(*headers),
        }
    return dict(sorted(found.items()))


def _success(operation: Operation, description: str, headers: Iterable[str], examples: Json) -> Json:
    content: Json = {"application/json": {"schema": answer_schema(operation), "examples": examples}}
    # The feed in lines is left out: only special clients ask for it, and generated clients would have to tell the two types apart.
    content |= {operation.text_type: {"schema": _STRING}} if operation.text_type else {}
    return {"description": description, "headers": headers_of(*headers), "content": content}
