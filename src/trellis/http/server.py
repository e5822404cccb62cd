"""The interface through which the server asks the application, outside of ASGI, for responses to excess writes and quick reads.

The server learns of requests from the callbacks of its parser, and never parses HTTP by itself. It sends the responses unchanged,
apart from headers of its own.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

from trellis.http.asgi import App, Scope


class ServerRefusal(Enum):
    """Refusals that the server sends in the application's place: the status, and the reason under which monitoring counts them."""

    MALFORMED = (HTTPStatus.BAD_REQUEST, "malformed")
    SLOW_HEAD = (HTTPStatus.REQUEST_TIMEOUT, "slow head")
    SLOW_BODY = (HTTPStatus.REQUEST_TIMEOUT, "slow body")
    LARGE_HEAD = (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "large head")
    CONNECTIONS = (HTTPStatus.SERVICE_UNAVAILABLE, "connections")
    WRITES = (HTTPStatus.SERVICE_UNAVAILABLE, "writes")

    @property
    def status(self) -> HTTPStatus:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]

    def write(self, also: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the response with which the server ends a connection, with these headers too."""
        body = f"{self.status.value} {self.status.phrase}\n".encode()
        headers = [(b"connection", b"close"), (b"content-type", b"text/plain; charset=utf-8")]
        headers += [(b"retry-after", b"1")] if self.status is HTTPStatus.SERVICE_UNAVAILABLE else []
        headers += [(b"content-length", b"%d" % len(body)), *also]
        return b"HTTP/1.1 " + body.replace(b"\n", b"\r\n") + write_headers(headers) + b"\r\n" + body


class Writes:
    """Recognises requests that write, and provides the response to them while too many are under way. This class recognises none.

    `under_way` is the server's count of writes whose bodies have arrived and that are not yet answered.
    """

    under_way = 0

    def has(self, method: bytes, path: bytes) -> bool:  # noqa: ARG002
        """Return whether a request writes."""
        return False

    def refuse(self, scope: Scope) -> bytes | None:  # noqa: ARG002
        """Return the whole response to the write with this ASGI scope if too many are in progress; otherwise None."""
        return None


class Whole(NamedTuple):
    """A whole response. `status` and `headers` include the ends of their lines, but not the headers that the server adds."""

    status: bytes
    headers: bytes
    body: bytes


def write_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return headers as HTTP/1.1 sends them, a line for each."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


class Reads:
    """Responses to reads that can be sent at once. This class has none."""

    is_empty = True  # whether `find` returns None for every request

    def begin(self) -> None:
        """Prepare for calls of `find` for requests that have all arrived by now."""

    def find(self, scope: Scope) -> Whole | App | None:  # noqa: ARG002
        """Return the response that the application would send to the request with this ASGI scope; None if it has to answer itself.

        The application's other work, such as counting and logging the request, has been done if a response is returned, and only
        then. A response that is not to be sent in one piece is returned as an application, which sends it and then does this work.
        """
        return None


class ServerHooks:
    """The hooks that the application sets for the server, and how often the server has refused in its place, by refusal."""

    def __init__(self) -> None:
        self.refused: Counter[ServerRefusal] = Counter()
        self.writes = Writes()
        self.reads = Reads()
