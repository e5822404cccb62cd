"""What is answered: the outcome of a write, a refusal, a page without a key, and what a path allows."""

from collections.abc import Iterable
from typing import Final

from trellis.core.fields import quote
from trellis.core.gate import Result
from trellis.core.version import compute_version, encode_json
from trellis.errors import Refused
from trellis.http.problems import format_problem, problem_headers
from trellis.http.routes import Route
from trellis.rest.cache import Kept
from trellis.rest.headers import none_match
from trellis.rest.limits import Allowance
from trellis.rest.request import Exchange, Headers, Reply

_PROBLEM: Final = b"application/problem+json"
_CORS: Final[Headers] = (
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, X-Audit-Log-Reason, X-Request-Id",
    ),
    (b"access-control-max-age", b"600"),
)


def conditional(exchange: Exchange, kept: Kept) -> Reply:
    """Answer with what is kept, unless the caller has it already."""
    headers = (*kept.headers, (b"etag", b'"%b"' % kept.tag))
    wanted = exchange.headers.get(b"if-none-match")
    if wanted is not None and none_match(wanted, kept.tag):
        return Reply(304, b"", headers)
    return Reply(200, kept.body, headers, kept.type)


def written(route: Route, answer: Result, here: str) -> Reply:
    """Answer a writing operation on the records at `here`."""
    body = encode_json(answer.value)
    if answer.dry:
        return Reply(200, body, ((b"dry-run", b"true"),))
    headers: Headers = ()
    if route.verb.etag:
        headers += ((b"etag", b'"%b"' % compute_version(body).encode()),)
    if route.verb.creates:
        headers += ((b"location", f"{here}/{answer.value['id']}".encode("latin-1")),)
    if answer.replayed:
        headers += ((b"idempotent-replayed", b"true"),)
    return Reply(route.status, body, headers)


def refusal(exchange: Exchange, refused: Refused) -> Reply:
    """Answer with a problem document (RFC 9457)."""
    status, body = format_problem(refused, exchange.base, exchange.request_id)
    headers = tuple((name.lower().encode(), value.encode("latin-1")) for name, value in problem_headers(refused).items())
    if "limit" in (facts := refused.facts):
        exchange.allowance = Allowance(facts["limit"], 0, facts["reset"])
    return Reply(status, body, headers, _PROBLEM)


def options(methods: Iterable[str], *, cors: bool) -> Reply:
    """Say what a path allows; with `cors`, also to a browser that asks before it sends."""
    allowed = _allowed(methods).encode()
    headers: Headers = ((b"allow", allowed),)
    if cors:
        headers += ((b"access-control-allow-methods", allowed), *_CORS)
    return Reply(204, b"", headers)


def bad_method(method: str, methods: Iterable[str]) -> Refused:
    """Refuse a method that a path does not answer."""
    allowed = _allowed(methods)
    return Refused("BAD_METHOD", f"This path does not answer {quote(method)}; it answers {allowed}.", facts={"allow": allowed})


def _allowed(methods: Iterable[str]) -> str:
    known = set(methods) | {"OPTIONS"}
    return ", ".join(sorted(known | {"HEAD"} if "GET" in known else known))
