"""uvicorn's HTTP protocol, with a short way for requests that can be answered where they stand.

Most requests are for reading, and many are the same bytes as one before. Those need no task, no queue of messages and no
second system call: uvicorn takes about 20 µs for the smallest answer, and the short way spares most of them. What the short
way does not know goes the long one, which is uvicorn's own.
"""

import asyncio
from typing import Any, Final, Protocol, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_API: Final = b"/api/"
_TOGETHER: Final = 65_536  # bytes of a body up to which it is put behind its head in one piece
_ASIDE: Final = frozenset((b"content-length", b"transfer-encoding", b"expect", b"upgrade"))


class Door(Protocol):
    """What the short way asks of the REST application: see trellis.rest.app.Rest."""

    in_place: bool

    def mark(self, data: bytes, peer: bytes) -> bytes | None: ...
    def again(self, mark: bytes) -> tuple[bytes, bytes] | None: ...
    def at_once(self, scope: Any) -> tuple[bytes, bytes]: ...


class JoiningTransport:
    """A transport that keeps what is written until the next write, or to the end of this turn of the event loop.

    uvicorn writes the head and the body of an answer one after the other, and each would be a system call and a wake-up of
    the caller: about 5 µs of the 20, and two packets where one would do.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._held is None:
            self._held = data
            self._loop.call_soon(self._flush)
        else:
            held, self._held = self._held, None
            self._transport.write(held + data)

    def _flush(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class TrellisProtocol(HttpToolsProtocol):
    """The protocol over such a transport, with the short way."""

    def __init__(self, config: Config, *more: Any, **named: Any) -> None:
        super().__init__(config, *more, **named)
        self._door: Door | None = None
        app: Any = self.app
        self._bare = hasattr(app, "rest")  # or else there is a layer around it that changes requests
        while app is not None and self._door is None:
            self._door, app = getattr(app, "rest", None), getattr(app, "app", None)
        self._inside = False  # in the middle of a request
        self._mark: bytes | None = None
        self._peer = b""
        self._direct = cast("asyncio.Transport", None)  # until the connection is made
        self._defaults: list[tuple[bytes, bytes]] | None = None
        self._tail = b"\r\n"
        self._last = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport, self.loop)))
        self._direct = transport
        self._peer = self.client[0].encode() if self.client else b""

    def data_received(self, data: bytes) -> None:
        self._mark = None
        if self._door is not None and self._between():
            self._mark = self._door.mark(data, self._peer)
            if self._mark is not None and (answer := self._door.again(self._mark)) is not None:
                self._answer(*answer)
                return
        super().data_received(data)

    def _between(self) -> bool:
        """Say that no request is under way on this connection, and no answer waits to be taken."""
        return not self._inside and (self._settled() and not self.flow.write_paused

    def _answer(self, head: bytes, body: bytes) -> None:
        if self._direct.is_closing():
            return
        defaults = self.server_state.default_headers
        if defaults is not self._defaults:  # a new date
            self._defaults = defaults
            self._tail = b"".join([b"%b: %b\r\n" % header for header in defaults]) + b"\r\n"
        if len(body) <= _TOGETHER:
            self._direct.write(head + self._tail + body)
        else:
            self._direct.writelines((head + self._tail, body))
        self.server_state.total_requests += 1
        self._last = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle; one timer serves many answers, since to wind it up anew for each costs more."""
        left = self._last + self.timeout_keep_alive - self.loop.time()
        if left > 0.01:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        self._inside = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if not (self._mark is not None and self._plain()):
            self._mark = None
            super().on_headers_complete()
        elif self._bare and self._door is not None and self._door.in_place and self.url.startswith(_API):
            self._at_once(self._door)
        else:
            self.scope["trellis.mark"] = self._mark  # type: ignore[typeddict-unknown-key]
            super().on_headers_complete()

    def _plain(self) -> bool:
        """Say that the request has nothing behind its head, and that the connection stays after the answer."""
        return (
            self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and not any(name in _ASIDE for name, _ in self.headers)
        )

    def _at_once(self, door: Door) -> None:
        url = httptools.parse_url(self.url)
        scope: dict[str, Any] = {
            **self.scope,
            "method": "GET",
            "path": url.path.decode("ascii"),
            "raw_path": url.path,
            "query_string": url.query or b"",
            "trellis.mark": self._mark,
        }
        self._answer(*door.at_once(scope))

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._inside = False
        if self.cycle is not None:
            super().on_message_complete()
