"""Records a span for each request over HTTP, if tracing is on."""

from collections.abc import MutableMapping
from typing import Any, Final

from trellis.http.api import PAGE, REQUEST, ApiRequest
from trellis.http.asgi import App, Receive, Scope, Send
from trellis.traces import TRACEPARENT, Span, Traces, find_traceparent

_METHODS: Final = frozenset(("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"))
_STREAM: Final = b"text/event-stream; charset=utf-8"  # as Starlette writes it
_OTHER: Final = "_OTHER"  # OpenTelemetry's conventions prescribe it for unknown methods, which anybody can make up


async def run_traced(traces: Traces, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application for one request inside a span, and put the span into the `traceparent` of the request.

    The span records neither the path nor the query: callers make them up, and they may contain a key. The span of a stream ends
    when its headers have been sent: the stream goes on for as long as somebody looks at a page, and nobody looks for a span that is
    reported hours later.
    """
    headers = scope["headers"]
    method = scope["method"] if scope["method"] in _METHODS else _OTHER
    sent = find_traceparent(headers)
    span = traces.begin(method, sent, {"http.request.method": method}, "server")
    scope["headers"] = [*((n, v) for n, v in headers if n != TRACEPARENT), (TRACEPARENT, span.traceparent.encode())]
    status = 0  # stays 0 if the caller leaves before there is a response
    has_ended = False

    async def watch(message: MutableMapping[str, Any]) -> None:
        nonlocal status, has_ended
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)
        if message["type"] == "http.response.start" and (b"content-type", _STREAM) in message["headers"]:
            has_ended = True
            _end(span, scope, method, status, None)

    error: str | None = "no response"
    try:
        await app(scope, receive, watch)
        error = None if 0 < status < 500 else error
    finally:
        if not has_ended:
            _end(span, scope, method, status, error)


def _end(span: Span, scope: Scope, method: str, status: int, error: str | None) -> None:
    request: ApiRequest | None = scope.get(REQUEST)
    bearer = None if request is None else request.bearer
    page: str | None = scope.get(PAGE)
    operation = None if request is None else request.operation
    refused = None if request is None else request.refused
    span.end(
        error and (refused or str(status or error)),
        {
            "http.response.status_code": status or None,
            "http.route": page or None,
            "trellis.operation": operation,
            "trellis.key": None if bearer is None else bearer.actor.id,
            "trellis.request": None if request is None else request.request_id,
            "trellis.refusal": refused,
            "trellis.waited": None if request is None or not request.waited else request.waited // 1_000_000,
        },
        operation or (f"{method} {page}" if page else None),
    )
