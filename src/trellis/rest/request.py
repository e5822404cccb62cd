"""One request of the API under way, and the answer that it gets: what the parts of the door hand to each other."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from trellis.core.keys import Bearer
from trellis.rest.limits import Allowance
from trellis.rest.recall import Asked

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON: Final = b"application/json"
_BODILESS: Final = frozenset((204, 304))
_ALWAYS: Final = (
    b"cache-control: private, no-cache\r\nvary: Authorization, X-API-Key, Origin\r\nx-content-type-options: nosniff\r\n"
)
_EXPOSED: Final = (
    b"access-control-expose-headers: Dry-Run, ETag, Idempotent-Replayed, Link, Location, Retry-After, "
    b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id\r\n"
)
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


@dataclass(slots=True)
class Reply:
    """An answer on its way: status, body, and the lines of headers beside those that every answer has.

    Headers are lines of HTTP/1.1 (RFC 9112) from where they are made, each with its end: most answers are sent as such.
    """

    status: int
    body: bytes = b""
    headers: bytes = b""
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


def lasting(reply: Reply, origin: bytes | None) -> bytes:
    """Write the headers of an answer that the same request gets again; `origin` is whose scripts a browser may let read it."""
    head = reply.headers + _ALWAYS
    if reply.status not in _BODILESS:
        head += b"content-type: %b\r\ncontent-length: %d\r\n" % (reply.type, len(reply.body))
    if origin is not None:
        head += b"access-control-allow-origin: %b\r\n" % origin + _EXPOSED
    return head


def passing(request_id: str, allowance: Allowance | None) -> bytes:
    """Write the headers of an answer that are other ones each time."""
    head = b"x-request-id: %b\r\n" % request_id.encode("latin-1")
    if allowance is not None:
        head += b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n" % allowance
    return head


def first_line(status: int) -> bytes:
    """Write the first line of an answer."""
    return _LINES[status]


def pairs_of(head: bytes) -> Headers:
    """Take headers apart as ASGI has them."""
    return [(name, value) for name, _, value in (line.partition(b": ") for line in head.split(b"\r\n")[:-1])]
