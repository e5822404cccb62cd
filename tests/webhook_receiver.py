"""A receiver of webhooks on this machine: it keeps what it receives, and answers as the test wants."""

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, ClassVar, Final, Self

import standardwebhooks

from tests.local_server import LocalServer, QuietHandler


@dataclass(frozen=True)
class Received:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The webhook-id."""
        return self.headers["webhook-id"]

    @property
    def name(self) -> str:
        """The name of the record that it is about, as it is now or was."""
        data = json.loads(self.body)["data"]
        return str((data["after"] or data["before"])["name"])

    def verified(self, secret: str) -> Any:
        """Verify it with the public library, and read it. Raises WebhookVerificationError."""
        return standardwebhooks.Webhook(secret).verify(self.body, self.headers)


class _Handler(QuietHandler):
    def do_POST(self) -> None:  # noqa: N802  # the standard library's name
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:  # its sender was killed in the middle: half a message is none
            self.close_connection = True
            return
        received = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        receiver: Receiver = self.server.owner
        with receiver.lock:
            receiver.received.append(received)
            receiver.under_way += 1
            receiver.most_at_once = max(receiver.most_at_once, receiver.under_way)
        try:
            receiver.answer(self, received)
        finally:
            with receiver.lock:
                receiver.under_way -= 1


Answer = Callable[[BaseHTTPRequestHandler, Received], None]


def respond_with(status: int, body: bytes = b"", **headers: str) -> Answer:
    """Answer with this; underscores in the names of headers are hyphens."""

    def answer(handler: BaseHTTPRequestHandler, _received: Received) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@dataclass
class Receiver(LocalServer):
    """A receiver; as a context it listens. `answer` may be changed at any time. `most_at_once` counts requests under way."""

    handler: ClassVar[type[QuietHandler]] = _Handler
    answer: Answer = field(default_factory=lambda: respond_with(200))
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    under_way: int = 0
    most_at_once: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        """The webhook-ids, in the order in which they came."""
        return [one.id for one in self.received]

    @property
    def distinct(self) -> list[str]:
        """The same without repetitions, each where it came first."""
        return list(dict.fromkeys(self.ids))


_DEAF: Final = 64


class RawServer:
    """A server that reads a request and then does with the connection what the test wants."""

    def __init__(self, act: Callable[[socket.socket], None]) -> None:
        self._act = act
        self.count = 0

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=_DEAF)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            self._act(connection)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/hook"
