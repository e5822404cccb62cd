"""One request of the API under way, and the answer that it gets: what the parts of the door hand to each other."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.keys import Bearer
from trellis.rest.limits import Allowance

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON: Final = b"application/json"
_BODILESS: Final = frozenset((204, 304))
_ALWAYS: Final[Headers] = (
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Authorization, X-API-Key, Origin"),
    (b"x-content-type-options", b"nosniff"),
)
_EXPOSED: Final = (
    b"access-control-expose-headers",
    (
        b"Dry-Run, ETag, Idempotent-Replayed, Link, Location, Retry-After, "
        b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
    ),
)


@dataclass(slots=True)
class Reply:
    """An answer on its way: status, body, and the headers beside those that every answer has."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    type: bytes = JSON


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
    receive: Receive
    version: int | None = None  # the data version that it was judged under
    operation: str | None = None
    bearer: Bearer | None = None
    allowance: Allowance | None = None
    logged: bool = True


def headers_of(exchange: Exchange, reply: Reply, origin: bytes | None) -> list[tuple[bytes, bytes]]:
    """Give all headers of an answer; `origin` is whose scripts a browser may let read it."""
    headers = [*reply.headers, *_ALWAYS, (b"x-request-id", exchange.request_id.encode("latin-1"))]
    if reply.status not in _BODILESS:
        headers += ((b"content-type", reply.type), (b"content-length", b"%d" % len(reply.body)))
    if origin is not None:
        headers += ((b"access-control-allow-origin", origin), _EXPOSED)
    if exchange.allowance is not None:
        limit, remaining, reset = exchange.allowance
        headers += (
            (b"x-ratelimit-limit", b"%d" % limit),
            (b"x-ratelimit-remaining", b"%d" % remaining),
            (b"x-ratelimit-reset", b"%d" % reset),
        )
    return headers
