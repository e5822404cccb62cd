"""A client that sends one request at a time on a connection, and notes when it was due and when its answer came."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tally:
    """What came back: status → how often, and after how many seconds each."""

    sent: int = 0
    unsent: int = 0  # all connections waited for their answers
    lost: int = 0  # the connection ended without an answer
    statuses: Counter[int] = field(default_factory=Counter)
    waits: dict[int, list[float]] = field(default_factory=dict)
    late: float = 0.0  # seconds by which the client was late with a request, at most

    def note(self, status: int, seconds: float) -> None:
        """Note an answer."""
        self.statuses[status] += 1
        self.waits.setdefault(status, []).append(seconds)

    @property
    def answered_well(self) -> int:
        """How many were done."""
        return self.statuses[201]


class Client(asyncio.Protocol):
    """A connection that sends one request at a time and waits for its answer."""

    def __init__(self, tally: Tally, on_free: Any) -> None:
        self.tally = tally  # where the next answer is noted
        self._on_free = on_free
        self._transport: Any = None
        self._since: float | None = None
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def send(self, request: bytes, due: float | None = None) -> None:
        """Send a request, which was due at a time on the monotonic clock, or is now."""
        self._since = time.monotonic() if due is None else due
        self.tally.sent += 1
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if not end or self._since is None:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) >= length:
            self.tally.note(int(head[9:12]), time.monotonic() - self._since)
            self._since, self._answer = None, b""
            self._on_free(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's name
        if self._since is not None:
            self.tally.lost += 1
            self._since = None

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent on it."""
        return not self._transport.is_closing()
