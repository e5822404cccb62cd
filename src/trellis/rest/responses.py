"""Responses: to a read, to a write, to a refusal."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from trellis.core.gate import Result
from trellis.core.paging import serialize_page
from trellis.core.verbs import Response, Verb
from trellis.errors import Refused
from trellis.http.api import ApiRequest, ApiResponse, CachedResponse, Headers, is_not_modified
from trellis.http.problems import PROBLEM, encode_problem_headers, format_problem
from trellis.rest.dialect import Translator, encode_answer
from trellis.rest.links import build_links

_RECORDS: Final = b'"results":'


def respond_to_read(request: ApiRequest, cached: CachedResponse) -> ApiResponse:
    """Return 200 with the body, or 304 if the caller has it already."""
    headers = (*cached.headers, (b"etag", b'"%b"' % cached.tag))
    wanted = request.headers.get(b"if-none-match")
    if wanted is not None and is_not_modified(wanted, cached.tag):
        return ApiResponse(304, b"", headers)
    return ApiResponse(200, cached.body, headers, cached.type, cached)


def respond_with_links(
    body: bytes, version: str, here: str, query: bytes, response: Response, answer: Mapping[str, Any]
) -> CachedResponse:
    """Return the response to a read at the URL `here`, with the links to other pages that the answer has."""
    links = build_links(response, here, query, answer)
    return CachedResponse(body, version.encode(), ((b"link", links),) if links else ())


def renew_page(
    recount: Callable[[], int], page: int, per_page: int, here: str, query: bytes, old: CachedResponse
) -> CachedResponse:
    """Return a page of records made from an older response, with the current total."""
    records = old.body[old.body.index(_RECORDS) + len(_RECORDS) : old.body.rindex(b"]") + 1]
    answer = serialize_page(orjson.Fragment(records), recount(), page, per_page)
    body, version = encode_answer(answer, answer, Response.PAGE)
    new = respond_with_links(body, version, here, query, Response.PAGE, answer)
    new.shows, new.renew, new.operation = old.shows, old.renew, old.operation
    return new


def respond_to_write(verb: Verb, result: Result, shown: Any, collection: str, *, pretty: bool) -> ApiResponse:
    """Return the response to a write, which shows its value as `shown`; `collection` is the URL of the records it belongs to."""
    body, version = encode_answer(result.value, shown, verb.response, pretty=pretty)
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
    """Return a problem document (RFC 9457), or the error document of a dialect."""
    if translator is None:
        body = format_problem(refused, request.base, request.request_id, pretty=request.pretty)
        return ApiResponse(refused.status, body, encode_problem_headers(refused), PROBLEM)
    status, body = translator.format_refusal(refused, pretty=request.pretty)
    return ApiResponse(status, body, encode_problem_headers(refused), translator.dialect.error_type.encode())
