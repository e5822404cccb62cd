"""The pace of a connection: what is expected of the other side, how long it may take, and when the service reads from it."""

import asyncio
from enum import Enum, auto
from typing import Final

from uvicorn.protocols.http.flow_control import FlowControl

RATE: Final = 10_240  # bytes per second at which a body must arrive, and an answer be read, on average


class Phase(Enum):
    """What is expected next on a connection."""

    REQUEST = auto()
    HEAD = auto()
    BODY = auto()


class Patience:
    """A number of seconds that runs down, and is renewed by bytes that arrive or leave: by a second for RATE bytes."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._left = most
        self._bytes = 0  # since the last check

    def renew(self) -> None:
        """Start again."""
        self._left, self._bytes = self._most, 0

    def count(self, size: int) -> None:
        """Count bytes that have arrived or left."""
        self._bytes += size

    def is_over(self, passed: float) -> bool:
        """Let seconds pass; return whether none are left."""
        self._left = min(self._most, self._left - passed + self._bytes / RATE)
        self._bytes = 0
        return self._left <= 0


class Flow(FlowControl):
    """uvicorn's control of a connection, which reads nothing more while there are bytes that are `unparsed`.

    uvicorn itself reads on after each answer, whatever waits: a caller could send requests without end,
    faster than they are answered.
    """

    def __init__(self, transport: asyncio.Transport, unparsed: bytearray) -> None:
        super().__init__(transport)
        self._unparsed = unparsed

    def resume_reading(self) -> None:
        if not self._unparsed:
            super().resume_reading()
