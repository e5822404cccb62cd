"""Callers that came before, and what they asked: ready to be sent again as long as nothing has changed.

A program sends the same headers with each of its requests, and a program that asks all day the same requests. What was found
out about either once (who it is, what is granted, which answer) holds as long as the data version does. They are remembered
by a keyed digest of their bytes and of whom those came from, so that no secret stands in memory.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from trellis.core.keys import Bearer

ASKED: Final = "trellis.asked"  # in the scope of a request that can be known again: an `Asked`
_MOST: Final = 1000  # callers
_OVERHEAD: Final = 800  # bytes that an answer takes beside its body
_LONGEST: Final = 4096  # bytes of a request's head, above which it is not looked at
_END: Final = b"\r\n\r\n"
# The first line of a request for reading, as plain as programs write it. What is not goes through the server's own parser,
# and so does a key in the query.
_LINE: Final = re.compile(rb"GET /api(/[A-Za-z0-9/_.~-]*(?:\?(?:(?!key=)[!-\"$-~])*)?) HTTP/1\.1\r\n")


class Known(NamedTuple):
    """An answer that was given to a caller: its head without what is another each time, and its body."""

    head: bytes
    body: bytes
    status: int
    path: str
    operation: str | None


@dataclass(slots=True, eq=False)
class Caller:
    """Whoever sends some headers, and the answers to its requests by what it asks for."""

    headers: Mapping[bytes, bytes]
    base: str
    address: str
    bearer: Bearer
    limit: int  # requests a minute; 0 is any number
    answers: dict[bytes, Known] = field(default_factory=dict)


class Asked(NamedTuple):
    """What somebody asks for, behind /api, and the mark of who it is."""

    target: bytes
    mark: bytes


class Recall:
    """The callers that are known under the present data version. When there are too many, all are forgotten.

    `room` is for how many bytes of answers there is place.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._version: int | None = None
        self._callers: dict[bytes, Caller] = {}
        self._salt = os.urandom(16)

    def read(self, data: bytes, peer: bytes) -> Asked | None:
        """Read the bytes of one request for reading that has nothing behind its head; None for anything else."""
        line = _LINE.match(data)
        if line is None or len(data) > _LONGEST or data.find(_END) != len(data) - 4:
            return None
        mark = blake2b(peer + data[line.end() :], key=self._salt, digest_size=16).digest()
        return Asked(line[1], mark)

    def find(self, version: int | None, mark: bytes) -> Caller | None:
        """Give who it is, if that was found out under this data version."""
        return self._callers.get(mark) if version is not None and version == self._version else None

    def meet(self, version: int, mark: bytes, caller: Caller) -> None:
        """Remember a caller that was judged by data not older than `version`."""
        if version != self._version or len(self._callers) >= _MOST:
            self._version = version
            self._forget()
        self._callers[mark] = caller

    def keep(self, caller: Caller, asked: Asked, known: Known) -> None:
        """Remember an answer to a caller, made from data not older than the version that it was met under."""
        size = len(known.body) + _OVERHEAD
        if asked.target in caller.answers or size > self._room // 8:
            return
        if self._used + size > self._room:
            self._forget()
        else:
            self._used += size
            caller.answers[asked.target] = known

    def _forget(self) -> None:
        self._callers = {}
        self._used = 0
