"""Responses that do not depend on the interface: to OPTIONS, and to unsupported methods."""

from collections.abc import Iterable
from typing import Final

from trellis.core.fields import quote
from trellis.errors import Refused
from trellis.http.api.request import ApiResponse, Headers
from trellis.sentences import say

_CORS: Final[Headers] = (
    (
        b"access-control-allow-headers",
        (
            b"Authorization, Change-Set, Content-Type, Idempotency-Key, If-Match, If-None-Match, Mcp-Method, Mcp-Name, "
            b"MCP-Protocol-Version, Traceparent, Tracestate, X-API-Key, X-Audit-Log-Reason, X-Request-Id"
        ),
    ),
    (b"access-control-max-age", b"600"),
)


def respond_to_options(methods: Iterable[str], *, cors: bool) -> ApiResponse:
    """Return the methods that a path allows; with `cors`, also the headers that answer a browser's preflight request."""
    allowed = _format_allow(methods).encode()
    headers: Headers = ((b"allow", allowed),)
    if cors:
        headers += ((b"access-control-allow-methods", allowed), *_CORS)
    return ApiResponse(204, b"", headers)


def respond_to_preflight() -> ApiResponse:
    """Allow the request that a browser asks about, for a path that does not exist: the page sees that only in the response."""
    return ApiResponse(204, b"", ((b"access-control-allow-methods", b"DELETE, GET, HEAD, POST, PUT"), *_CORS))


def refuse_method(method: str, methods: Iterable[str]) -> Refused:
    """Refuse a method that a path does not support."""
    allowed = _format_allow(methods)
    return Refused(
        "BAD_METHOD",
        say("This path does not support {method}; it supports {allowed}.", method=quote(method), allowed=allowed),
        facts={"allow": allowed},
    )


def _format_allow(methods: Iterable[str]) -> str:
    known = set(methods) | {"OPTIONS"}
    return ", ".join(sorted(known | {"HEAD"} if "GET" in known else known))
