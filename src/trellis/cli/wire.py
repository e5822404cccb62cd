"""uvicorn's HTTP protocol, with a short way for requests that can be answered where they stand.

Most requests are for reading, from callers that are known, and many are the same bytes as one before. Those need no parser, no
task, no queue of messages and no second system call: uvicorn takes about 20 µs for the smallest answer, and the short way
spares most of them. What it does not know goes the long one, which is uvicorn's own.
"""

import asyncio
from typing import Any, Final, Protocol, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trellis.rest.recall import ASKED

_TOGETHER: Final = 65_536  # bytes of a body up to which it is put behind its head in one piece
_ASIDE: Final = frozenset((b"content-length", b"transfer-encoding", b"expect", b"upgrade"))


class Reader(Protocol):
    """Reads the bytes of a request: see trellis.rest.recall.Recall."""

    def read(self, data: bytes, peer: bytes) -> Any: ...


class Door(Protocol):
    """What the short way asks of the REST application: see trellis.rest.app.Rest."""

    recall: Reader

    def again(self, asked: Any) -> tuple[bytes, bytes] | None: ...


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
        app: Any = self.app
        while app is not None and not hasattr(app, "rest"):  # layers around it, such as the one for the headers of proxies
            app = getattr(app, "app", None)
        self._door: Door | None = getattr(app, "rest", None)
        self._asked: Any = None  # what the bytes that came last ask for, if the short way could know that again
        self._inside = False  # in the middle of a request
        self._peer = b""
        self._direct = cast("asyncio.Transport", None)  # until the connection is made
        self._defaults: list[tuple[bytes, bytes]] | None = None
        self._end = b"\r\n"
        self._last = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport, self.loop)))
        self._direct = transport
        self._peer = self.client[0].encode() if self.client else b""

    def data_received(self, data: bytes) -> None:
        self._asked = None
        if self._door is not None and not self._inside and self._idle():
            self._asked = self._door.recall.read(data, self._peer)
            if self._asked is not None and (answer := self._door.again(self._asked)) is not None:
                self._answer(*answer)
                return
        super().data_received(data)

    def _idle(self) -> bool:
        """Say that no request is under way on this connection, and no answer waits to be taken."""
        cycle: Any = self.cycle
        return (cycle is None or cycle.response_complete) and not self.flow.write_paused

    def _answer(self, head: bytes, body: bytes) -> None:
        if self._direct.is_closing():
            return
        defaults = self.server_state.default_headers
        if defaults is not self._defaults:  # a new date
            self._defaults = defaults
            self._end = b"".join([b"%b: %b\r\n" % header for header in defaults]) + b"\r\n"
        if len(body) <= _TOGETHER:
            self._direct.write(head + self._end + body)
        else:
            self._direct.writelines((head + self._end, body))
        self.server_state.total_requests += 1
        self._last = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle. One timer serves many answers: to wind it up anew for each would cost more."""
        left = self._last + self.timeout_keep_alive - self.loop.time()
        if left > 0.01:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        self._inside = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._asked is not None and self._plain():
            self.scope[ASKED] = self._asked  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def _plain(self) -> bool:
        """Say that the request has nothing behind its head, and that the connection stays after the answer."""
        return (
            self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and not any(name in _ASIDE for name, _ in self.headers)
        )

    def on_message_complete(self) -> None:
        self._inside = False
        super().on_message_complete()
