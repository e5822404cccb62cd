"""Answers kept in memory while nothing has changed: encoded bytes, valid for one data version, bounded in bytes."""

from collections import OrderedDict
from typing import Final, NamedTuple

from trellis.rest.request import Headers

_OVERHEAD: Final = 600  # bytes that an entry takes beside its body: the name, the tuple, the headers


class Kept(NamedTuple):
    """An encoded answer: body, version tag, the headers that go with it, and its type."""

    body: bytes
    tag: bytes
    headers: Headers = ()
    type: bytes = b"application/json"


class Answers:
    """What was answered under the present data version, the least recently used forgotten first.

    Keys and grants are judged before anything is looked up here, and an answer is kept only where every key that may run the
    operation gets the same one.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._version: int | None = None
        self._kept: OrderedDict[tuple[object, ...], Kept] = OrderedDict()

    def find(self, version: int, name: tuple[object, ...]) -> Kept | None:
        """Give the answer kept under a name, if the data are still those it was made from."""
        if version != self._version:
            self._version = version
            self._kept.clear()
            self._used = 0
            return None
        kept = self._kept.get(name)
        if kept is not None:
            self._kept.move_to_end(name)
        return kept

    def keep(self, version: int, name: tuple[object, ...], answer: Kept) -> None:
        """Keep an answer that was made from data not older than `version`."""
        size = len(answer.body) + _OVERHEAD
        if version != self._version or name in self._kept or size > self._room // 8:
            return
        # orjson hands out its whole buffer, of which an answer fills a part: 8 KiB for a record of 500 bytes.
        self._kept[name] = answer._replace(body=bytes(memoryview(answer.body)))
        self._used += size
        while self._used > self._room:
            _, gone = self._kept.popitem(last=False)
            self._used -= len(gone.body) + _OVERHEAD
