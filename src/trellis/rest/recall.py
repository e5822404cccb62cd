"""Requests that came before, byte for byte: their answers, ready to be sent as long as nothing has changed.

A program that asks all day sends the same bytes each time. What was found out about them once (who it is, what is granted,
which answer) holds as long as the data version does, and what does not is judged anew on each request: whether the key has
run out, how often it was used, and what the log is to say. Requests are remembered by a keyed digest, so that no secret
stands in memory.
"""

import os
from hashlib import blake2b
from typing import Final, NamedTuple

from trellis.core.keyring import Bearer

_OVERHEAD: Final = 1500  # bytes that an entry takes beside its body
_LONGEST: Final = 4096  # bytes of a request's head, above which it is not remembered
_READING: Final = b"GET /api/"
_END: Final = b"\r\n\r\n"


class Known(NamedTuple):
    """A request that is known, and its answer."""

    bearer: Bearer
    limit: int  # requests a minute; 0 is any number
    path: str
    operation: str | None
    address: str
    head: bytes
    body: bytes
    status: int


class Recall:
    """The requests that are known under the present data version, the first remembered forgotten first."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._version: int | None = None
        self._known: dict[bytes, Known] = {}
        self._salt = os.urandom(16)

    def mark(self, data: bytes, peer: bytes) -> bytes | None:
        """Give the digest of what came, if that can be known again: the whole head of one request for reading, and no more.

        `peer` is whom the bytes came from: the caller, or a proxy.
        """
        if data.startswith(_READING) and len(data) <= _LONGEST and data.find(_END) == len(data) - 4:
            return blake2b(peer + data, key=self._salt, digest_size=16).digest()
        return None

    def find(self, version: int | None, mark: bytes) -> Known | None:
        """Give what is known of a request under a data version."""
        if version is None or version != self._version:
            return None
        return self._known.get(mark)

    def keep(self, version: int, mark: bytes, known: Known) -> None:
        """Remember a request whose answer was made from data not older than `version`."""
        if version != self._version:
            self._version = version
            self._known.clear()
            self._used = 0
        size = len(known.body) + _OVERHEAD
        if mark in self._known or size > self._room // 8:
            return
        self._known[mark] = known
        self._used += size
        while self._used > self._room:
            gone = self._known.pop(next(iter(self._known)))
            self._used -= len(gone.body) + _OVERHEAD
