"""Sends large answers in parts as their callers read them, and bounds the memory that they take.

A server keeps what a caller has not read yet. An answer whose parts are each sent when the caller has read the one before is kept
once, here, however many callers read it, and the server keeps two parts for each caller.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trellis.errors import Refused
from trellis.http.asgi import Send
from trellis.http.large import counting
from trellis.sentences import say

PART: Final = 65_536  # bytes; smaller answers are sent whole, and not counted
_SHARE: Final = 4  # all answers to one caller may take a quarter of the limit


async def send_body(send: Send, body: bytes) -> None:
    """Send the body of an answer, and wait until the caller has taken all but the last part."""
    for start in range(0, len(body) - PART, PART):
        await send({"type": "http.response.body", "body": body[start : start + PART], "more_body": True})
    rest = (len(body) - 1) // PART * PART if body else 0
    await send({"type": "http.response.body", "body": body[rest:] if rest else body})


class BytesUnderWay:
    """Counts the large bodies that are being sent: each once in the total, and once for each caller. It belongs to one thread.

    `most` bounds the bytes of all bodies together; those of one caller may take a quarter of it. A caller who is being sent none
    may always have one that is within the bound of all, so that every answer that can be requested can be read.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._readers: Counter[int] = Counter()  # by the identity of a body, which its sender keeps alive
        self._callers: dict[str, Counter[int]] = {}
        self._sizes: dict[int, int] = {}

    @property
    def total(self) -> int:
        """The bytes under way."""
        return sum(self._sizes.values())

    def admit(self, caller: str, body: bytes) -> None:
        """Refuse a body that would exceed a limit together with those that are under way."""
        if len(body) <= PART:
            return
        own = self._callers.get(caller) or Counter()
        held = sum(self._sizes[name] for name in own)
        if own and id(body) not in own and held + len(body) > self._most // _SHARE:
            raise _refuse(f"{held:,} bytes of earlier answers are waiting to be read by this caller.")
        if self._sizes and id(body) not in self._sizes and self.total + len(body) > self._most:
            raise _refuse(f"{self.total:,} bytes of answers are waiting to be read, which is the limit of this service.")

    @contextmanager
    def hold(self, caller: str, body: bytes) -> Iterator[None]:
        """Count a body as under way to a caller."""
        if len(body) <= PART:
            yield
            return
        name = id(body)
        own = self._callers.setdefault(caller, Counter())
        self._sizes[name] = len(body)
        try:
            with counting(own, name), counting(self._readers, name):
                yield
        finally:
            if name not in self._readers:
                del self._sizes[name]
            if not own:
                self._callers.pop(caller, None)


def _refuse(detail: str) -> Refused:
    return Refused("TOO_MUCH_UNREAD", say("{detail} Read them, or close the connections, and try again.", detail=detail))
