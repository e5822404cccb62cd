"""Responses: to a read, to a write, to a refusal, and to OPTIONS."""

from collections.abc import Iterable
from typing import Any, Final

from trellis.core.fields import quote
from trellis.core.gate import Result
from trellis.core.verbs import Verb
from trellis.errors import Refused
from trellis.http.problems import format_problem, problem_headers
from trellis.rest.cache import CachedResponse
from trellis.rest.dialect import Translator, encode_answer
from trellis.rest.headers import is_not_modified
from trellis.rest.limits import Allowance
from trellis.rest.request import ApiRequest, ApiResponse, Headers

_PROBLEM: Final = b"application/problem+json"
_CORS: Final[Headers] = (
    (
        b"access-control-allow-headers",
        (
            b"Authorization, Change-Set, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, "
            b"X-Audit-Log-Reason, X-Request-Id"
        ),
    ),
    (b"access-control-max-age", b"600"),
)


def respond_to_read(request: ApiRequest, cached: CachedResponse) -> ApiResponse:
    """Return 200 with the body, or 304 if the caller has it already."""
    headers = (*cached.headers, (b"etag", b'"%b"' % cached.tag))
    wanted = request.headers.get(b"if-none-match")
    if wanted is not None and is_not_modified(wanted, cached.tag):
        return ApiResponse(304, b"", headers)
    return ApiResponse(200, cached.body, headers, cached.type, cached)


def respond_to_write(verb: Verb, result: Result, shown: Any, collection: str) -> ApiResponse:
    """Return the response to a write, which shows its value as `shown`; `collection` is the URL of the records it belongs to."""
    body, version = encode_answer(result.value, shown, verb.response)
    if result.dry:
        return ApiResponse(200, body, ((b"dry-run", b"true"),))
    headers: Headers = ()
    if verb.etag:
        headers += ((b"etag", b'"%b"' % version.encode()),)
    if result.event is not None:
        headers += ((b"event", b"%d" % result.event),)
    if result.change_set is not None:
        headers += ((b"change-set-id", b"%d" % result.change_set),)
    if verb.creates:
        headers += ((b"location", f"{collection}/{result.value['id']}".encode("latin-1")),)
    if result.replayed:
        headers += ((b"idempotent-replayed", b"true"),)
    return ApiResponse(verb.status, body, headers)


def respond_to_refusal(request: ApiRequest, refused: Refused, translator: Translator | None = None) -> ApiResponse:
    """Return a problem document (RFC 9457), or what a dialect has in its place."""
    if translator is None:
        kind, (status, body) = _PROBLEM, format_problem(refused, request.base, request.request_id)
    else:
        kind, (status, body) = translator.dialect.error_type.encode(), translator.format_refusal(refused)
    headers = tuple((name.lower().encode(), value.encode("latin-1")) for name, value in problem_headers(refused).items())
    if "limit" in (facts := refused.facts):
        request.allowance = Allowance(facts["limit"], 0, facts["reset"])
    return ApiResponse(status, body, headers, kind)


def respond_to_options(methods: Iterable[str], *, cors: bool) -> ApiResponse:
    """Return the methods that a path allows; with `cors`, also the headers that answer a browser's preflight request."""
    allowed = _format_allow(methods).encode()
    headers: Headers = ((b"allow", allowed),)
    if cors:
        headers += ((b"access-control-allow-methods", allowed), *_CORS)
    return ApiResponse(204, b"", headers)


def refuse_method(method: str, methods: Iterable[str]) -> Refused:
    """Refuse a method that a path does not support."""
    allowed = _format_allow(methods)
    return Refused("BAD_METHOD", f"This path does not support {quote(method)}; it supports {allowed}.", facts={"allow": allowed})


def _format_allow(methods: Iterable[str]) -> str:
    known = set(methods) | {"OPTIONS"}
    return ", ".join(sorted(known | {"HEAD"} if "GET" in known else known))
