"""One request of the API under way, and the answer that it gets: what the parts of the door hand to each other."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from trellis.core.keyring import Bearer
from trellis.rest.limits import Allowance
from trellis.rest.recall import Asked

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON: Final = b"application/json"
_BODILESS: Final = frozenset((204, 304))
_ALWAYS: Final = (
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Authorization, X-API-Key, Origin"),
    (b"x-content-type-options", b"nosniff"),
)
_EXPOSED: Final = (
    b"Dry-Run, ETag, Idempotent-Replayed, Link, Location, Retry-After, "
    b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
)
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


@dataclass(slots=True)
class Reply:
    """An answer on its way: status, body, and headers beside those that every answer has."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)
    type: bytes = JSON


async def nothing_more() -> MutableMapping[str, Any]:
    """Receive what comes behind the head of a request that has no body."""
    return {"type": "http.request", "body": b"", "more_body": False}


@dataclass(slots=True)
class Exchange:
    """One request under way, and what has been found out about it so far."""

    method: str
    path: str  # behind /api
    query: bytes
    headers: Mapping[bytes, bytes]
    base: str  # the address under which the caller reaches this service
    address: str
    request_id: str
    at: str  # when it came
    receive: Receive = nothing_more
    asked: Asked | None = None  # by what it can be known again
    version: int | None = None  # the data version that it was judged under
    operation: str | None = None
    bearer: Bearer | None = None
    allowance: Allowance | None = None
    logged: bool = True
    lasts: bool = False  # the answer stays the same as long as the data version does


def lasting(reply: Reply, origin: bytes | None) -> Headers:
    """Give the headers of an answer that the same request gets again; `origin` is whom a browser may let read it."""
    headers = reply.headers
    if reply.status not in _BODILESS:
        headers.append((b"content-type", reply.type))
        headers.append((b"content-length", b"%d" % len(reply.body)))
    headers += _ALWAYS
    if origin is not None:
        headers.append((b"access-control-allow-origin", origin))
        headers.append((b"access-control-expose-headers", _EXPOSED))
    return headers


def passing(request_id: str, allowance: Allowance | None) -> Headers:
    """Give the headers of an answer that are other ones each time."""
    headers: Headers = [(b"x-request-id", request_id.encode("latin-1"))]
    if allowance is not None:
        headers.append((b"x-ratelimit-limit", b"%d" % allowance.limit))
        headers.append((b"x-ratelimit-remaining", b"%d" % allowance.remaining))
        headers.append((b"x-ratelimit-reset", b"%d" % allowance.reset))
    return headers


def first_line(status: int) -> bytes:
    """Write the first line of an answer as HTTP/1.1 has it (RFC 9112)."""
    return _LINES[status]


def lines_of(headers: Headers) -> bytes:
    """Write headers as HTTP/1.1 has them (RFC 9112), without the empty line that ends them."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])
