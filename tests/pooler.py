"""A pooler in front of the PostgreSQL of a test: its clients share one session, which changes hands with each transaction."""

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

import psycopg
import sqlalchemy as sa

_ENCRYPTED: tuple[int, int] = (80877103, 80877104)  # requests for TLS and GSSAPI
_IDLE = b"I"  # the server's state between two transactions


class Pooler:
    """Gives each transaction of a client the session. `url` is the database through it."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            info = connection.info
            self._server = f"{info.host}/.s.PGSQL.{info.port}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = sa.make_url(url).set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
        self._turn = threading.Lock()
        self._session: socket.socket | None = None
        self._greeting = b""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._session is not None:
            self._session.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            first = _read_first(client)
            while struct.unpack("!I", first[4:8])[0] in _ENCRYPTED:
                client.sendall(b"N")
                first = _read_first(client)
            with self._turn:
                if self._session is None:
                    self._session = socket.socket(socket.AF_UNIX)
                    self._session.connect(self._server)
                    self._session.sendall(first)
                    self._greeting, _ = _read_answer(self._session)
            client.sendall(self._greeting)
            state = _IDLE
            while (message := _read_message(client))[:1] != b"X":
                if state == _IDLE:
                    self._turn.acquire()
                self._session.sendall(message)
                if message[:1] in {b"Q", b"S"}:  # what the server answers with its state
                    answer, state = _read_answer(self._session)
                    client.sendall(answer)
                    if state == _IDLE:
                        self._turn.release()
                else:
                    state = b"T"


def _read(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        if not (part := source.recv(size - len(found))):
            raise EOFError
        found += part
    return found


def _read_first(source: socket.socket) -> bytes:
    size = _read(source, 4)
    return size + _read(source, struct.unpack("!I", size)[0] - 4)


def _read_message(source: socket.socket) -> bytes:
    return _read(source, 1) + _read_first(source)


def _read_answer(server: socket.socket) -> tuple[bytes, bytes]:
    """Read messages up to the server's state, and return them and the state. The number of its process is replaced."""
    found = b""
    while True:
        message = _read_message(server)
        if message[:1] == b"K":
            message = message[:5] + struct.pack("!I", 1) + message[9:]
        found += message
        if message[:1] == b"Z":
            return found, message[5:6]
