"""An HTTP server on this machine, in threads of the test's own process."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self


class QuietHandler(BaseHTTPRequestHandler):
    """Handles requests without printing them; `server.owner` is whose server it is."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's name
        del format, args


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: Any

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: some tests have the client close connections."""


class LocalServer:
    """A server; as a context it listens."""

    handler: ClassVar[type[QuietHandler]]
    tls: ssl.SSLContext | None = None

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), self.handler)
        self._server.owner = self
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])
