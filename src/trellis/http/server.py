"""The interface through which the server asks the application, outside of ASGI, for responses to excess writes and quick reads.

The server learns of requests from the callbacks of its parser, and never parses HTTP by itself. It sends the responses unchanged,
apart from headers of its own.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from functools import cache
from http import HTTPStatus
from typing import NamedTuple

from trellis.errors import Refused
from trellis.http.asgi import App, Scope
from trellis.http.problems import PROBLEM, encode_problem_headers, format_problem
from trellis.refusals import REFUSALS


class ServerRefusal(Enum):
    """Refusals that the server sends in the application's place: the reason under which monitoring counts them, message, detail."""

    MALFORMED = (
        "malformed",
        "MALFORMED_REQUEST",
        "This cannot be read as HTTP/1.1, or its method is unknown. Send GET, HEAD, OPTIONS, POST, PUT or DELETE, without TLS.",
    )
    SLOW_HEAD = (
        "slow head",
        "REQUEST_TIMEOUT",
        "The headers did not arrive in time, and nothing was done. Send the request without pauses, on a new connection.",
    )
    SLOW_BODY = (
        "slow body",
        "REQUEST_TIMEOUT",
        "The body did not arrive in time, and nothing was done. Send it without pauses, on a new connection.",
    )
    LARGE_HEAD = (
        "large head",
        "HEAD_TOO_LARGE",
        "The request line and the headers take more than 64 KiB. Send long values in the body, and fewer cookies.",
    )
    CONNECTIONS = (
        "connections",
        "TOO_MANY_CONNECTIONS",
        "There are too many connections. Keep connections open and use them again, and try again in a second.",
    )
    WRITES = ("writes", "BUSY", "")  # the application provides the response

    @property
    def status(self) -> HTTPStatus:
        return HTTPStatus(REFUSALS[self.value[1]].status)

    @property
    def reason(self) -> str:
        return self.value[0]

    def write(self, also: Iterable[tuple[bytes, bytes]], base_url: str, request_id: str) -> bytes:
        """Return the response with which the server ends a connection, with these headers too: a problem document."""
        _, message, detail = self.value
        refused = Refused(message, detail)
        body = format_problem(refused, base_url, request_id)
        headers = [(b"connection", b"close"), (b"content-type", PROBLEM), *encode_problem_headers(refused)]
        headers += [(b"x-request-id", request_id.encode("latin-1")), (b"content-length", b"%d" % len(body)), *also]
        return write_status(self.status) + write_headers(headers) + b"\r\n" + body


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


@cache
def write_status(status: int) -> bytes:
    """Return the status line of a response."""
    return f"HTTP/1.1 {status:d} {HTTPStatus(status).phrase}\r\n".encode()


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
