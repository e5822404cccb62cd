"""What the server asks of the application outside of ASGI: the response to writes that are too many, and those in memory.

The server calls these from the calls of its parser, and never reads HTTP by itself. It sends what it gets as it is.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple


class ServerRefusal(Enum):
    """What the server refuses in the application's place: the status, and the reason that monitoring tells."""

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


class Writes:
    """Which requests write, and the response to them while too many are under way. This one knows of none.

    The server counts in `under_way` those whose body has come, until they are answered.
    """

    under_way = 0

    def has(self, method: bytes, path: bytes) -> bool:  # noqa: ARG002
        """Return whether a request writes."""
        return False

    def refuse(self, scope: MutableMapping[str, Any]) -> bytes | None:  # noqa: ARG002
        """Return the whole response to a write, by its ASGI scope, if too many are under way; else None."""
        return None


class Whole(NamedTuple):
    """A whole response: its status line and headers, each with the end of its line, without what the server adds; its body."""

    status: bytes
    headers: bytes
    body: bytes


App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]  # of ASGI


class Reads:
    """The responses to reads that can be sent at once. This one has none."""

    is_empty = True  # whether `find` returns nothing, whatever it is asked

    def begin(self) -> None:
        """Expect requests that have come by now, one after the other."""

    def find(self, scope: MutableMapping[str, Any]) -> Whole | App | None:  # noqa: ARG002
        """Return the response to a request, by its ASGI scope, as the application would send it; None: let that answer.

        What the application does beside, such as counting and logging the request, is done if there is a response, and only then.
        One that is not to be sent in one piece is an application, which sends it, and does this when it has.
        """
        return None


class ServerHooks:
    """What the server asks, which the application sets; and how often the server has refused in its place, by refusal."""

    def __init__(self) -> None:
        self.refused: Counter[ServerRefusal] = Counter()
        self.writes = Writes()
        self.reads = Reads()
