"""One request of the API under way, and the answer that it gets: what the parts of the door hand to each other."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from trellis.core.keyring import Bearer
from trellis.rest.limits import Allowance

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
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


@dataclass(slots=True)
class Reply:
    """An answer on its way: status, body, and headers beside those that every answer has."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)
    type: bytes = JSON


@dataclass(slots=True)
class Exchange:
    """One request under way, and what has been found out about it so far."""

    scope: Scope
    receive: Receive
    method: str
    path: str
    headers: dict[bytes, bytes]
    address: str
    request_id: str
    at: str  # when it came
    operation: str | None = None
    bearer: Bearer | None = None
    allowance: Allowance | None = None
    logged: bool = True
    lasts: int | None = None  # the data version for which the same request gets the same answer, if it is known to


def lasting(reply: Reply, origin: bytes | None, exposed: bytes) -> Headers:
    """Give the headers of an answer that the same request gets again while nothing has changed."""
    headers = reply.headers
    if reply.status not in _BODILESS:
        headers.append((b"content-type", reply.type))
        headers.append((b"content-length", b"%d" % len(reply.body)))
    headers += _ALWAYS
    if origin is not None:
        headers.append((b"access-control-allow-origin", origin))
        headers.append((b"access-control-expose-headers", exposed))
    return headers


def passing(request_id: str, allowance: Allowance | None) -> Headers:
    """Give the headers of an answer that are other ones each time."""
    headers: Headers = [(b"x-request-id", request_id.encode("latin-1"))]
    if allowance is not None:
        headers.append((b"x-ratelimit-limit", b"%d" % allowance.limit))
        headers.append((b"x-ratelimit-remaining", b"%d" % allowance.remaining))
        headers.append((b"x-ratelimit-reset", b"%d" % allowance.reset))
    return headers


def head_of(status: int, headers: Headers) -> bytes:
    """Write the head of an answer as HTTP/1.1 has it (RFC 9112), without the empty line behind it."""
    return _LINES[status] + b"".join([b"%b: %b\r\n" % header for header in headers])
