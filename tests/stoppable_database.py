"""A way to the PostgreSQL of a test that can be stopped: what is sent then arrives nowhere, as with a server under SIGSTOP."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

import psycopg
import sqlalchemy as sa


class StoppableDatabase:
    """Passes bytes between clients and the server of a database. `url` is the database by this way."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            info = connection.info
            self._server = f"{info.host}/.s.PGSQL.{info.port}" if info.host.startswith("/") else (info.host, info.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        address = sa.make_url(url)
        self.url = address.set(host="127.0.0.1", port=self._listener.getsockname()[1], query={}).render_as_string(
            hide_password=False
        )
        self._passes = threading.Event()
        self._passes.set()
        self._open: list[socket.socket] = []

    def stop(self) -> None:
        """Pass nothing any more. Connections stay, and new ones are taken, but nobody answers."""
        self._passes.clear()

    def go_on(self) -> None:
        """Pass everything, what was sent meanwhile first."""
        self._passes.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._passes.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET)
                server.connect(self._server)
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:
            while data := source.recv(65_536):
                self._passes.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
