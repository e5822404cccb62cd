"""Writes a line to the log for each request over HTTP, if the operator asks for it."""

import time
from collections.abc import MutableMapping
from typing import Any, Final

from trellis.core.keys import redact_path
from trellis.http.api import REQUEST, ApiRequest
from trellis.http.asgi import App, Receive, Scope, Send
from trellis.logs import SERVER_STATUS, access_log, redact_links
from trellis.traces import find_traceparent, log_fields

_REQUEST: Final = b"x-request-id"


async def run_logged(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application for one request, and log the outcome. The query is left out, as it may contain a key."""
    started = time.perf_counter_ns()
    status = 0  # stays 0 if the caller leaves before there is a response
    request_id: str | None = None

    async def watch(message: MutableMapping[str, Any]) -> None:
        nonlocal status, request_id
        if message["type"] == "http.response.start":
            status = message["status"]
            request_id = next((value.decode("latin-1") for name, value in message["headers"] if name == _REQUEST), None)
        await send(message)

    try:
        await app(scope, receive, watch)
    finally:
        request: ApiRequest | None = scope.get(REQUEST)
        bearer = None if request is None else request.bearer
        facts = {
            "method": scope["method"][:16],
            "path": redact_links(redact_path(scope["path"])),
            "status": scope.get(SERVER_STATUS, status),
            "ms": round((time.perf_counter_ns() - started) / 1e6, 3),
            "operation": None if request is None else request.operation,
            "key": None if bearer is None else bearer.actor.id,
            "address": client[0] if (client := scope.get("client")) else None,
            **log_fields(request_id, find_traceparent(scope["headers"])),
        }
        access_log.info("%(method)s %(path)s %(status)d %(ms)s ms", facts, extra=facts)
