"""Answers requests that need no task of their own: those of one turn of the event loop together, in one call.

A task for each would cost as much as the answer. All requests of a turn have arrived before the call, which begins by looking at
the state of the data.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from trellis.http.asgi import App, run_to_end
from trellis.http.server import Reads, ServerHooks, Whole, write_headers

log = logging.getLogger(__name__)

Headers = list[tuple[bytes, bytes]]

_FORWARDED: Final = frozenset((b"x-forwarded-for", b"x-forwarded-proto"))


class ReadyConnection(Protocol):
    """The connection of a request."""

    loop: Any
    transport: Any
    flow: Any

    def answer(self, cycle: Any, app: Any, response: Whole | None) -> None:
        """Send the response, or let the application answer."""


class ReadyRequests:
    """The requests of this turn that wait for the call. `proxies` are the networks whose forwarding headers are trusted."""

    def __init__(self, hooks: ServerHooks, proxies: Sequence[str]) -> None:
        self._hooks = hooks
        self._arrived: list[tuple[ReadyConnection, Any, Any]] = []
        self._proxies = ProxyHeadersMiddleware(_pass, list(proxies)) if proxies else None
        self._own: tuple[Headers, bytes] = [], b""

    def add(self, connection: ReadyConnection, cycle: Any, app: Any) -> bool:
        """Take a request, or return False if it cannot be answered at once."""
        if self._hooks.reads.is_empty or cycle.scope["method"] != "GET":
            return False
        if not self._arrived:
            connection.loop.call_soon(self._answer)
        self._arrived.append((connection, cycle, app))
        return True

    def write_own(self, headers: Headers) -> bytes:
        """Return the server's own headers as they are sent. They are a new list once a second, with another date."""
        if headers is not self._own[0]:
            self._own = headers, write_headers(headers)
        return self._own[1]

    def _answer(self) -> None:
        arrived, self._arrived = self._arrived, []
        reads = self._hooks.reads
        try:
            reads.begin()
        except Exception:
            log.exception("The response cache could not be checked.")
            reads = Reads()
        for connection, cycle, app in arrived:
            try:
                # Only what can be sent is asked for: a caller who does not read, or has gone, is left to the application.
                found = None if cycle.disconnected or connection.flow.write_paused else self._find(reads, cycle.scope)
                if isinstance(found, Whole):
                    connection.answer(cycle, app, found)
                else:
                    connection.answer(cycle, found or app, None)
            except Exception:  # the others have to be answered
                log.exception("A response from memory could not be sent.")
                connection.transport.abort()

    def _find(self, reads: Reads, scope: Any) -> Whole | App | None:
        try:
            return reads.find(self._find_caller(scope))
        except Exception:
            log.exception("A response could not be looked up in the cache.")
            return None

    def _find_caller(self, scope: Any) -> Any:
        """Return the scope as the application will see it behind a proxy that is trusted."""
        if self._proxies is None or not any(name in _FORWARDED for name, _ in scope["headers"]):
            return scope
        forwarded = dict(scope)
        reading: Any = self._proxies(cast("Any", forwarded), _nothing, _nothing)
        run_to_end(reading)
        return forwarded


async def _pass(_scope: Any, _receive: Any, _send: Any) -> None:
    """Serve as an application that does nothing."""


async def _nothing(*_: Any) -> Any:
    raise NotImplementedError
