"""Decides where a request is read: in place if it is short, in a thread if it is long, so that no other request waits for it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, ParamSpec, TypeVar

from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import refuse_late

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")

# Requests with more bytes than this take longer to read than to hand to a thread and back (0.1 ms): JSON is read at 10 to 100 MB/s,
# nested lists, forms and HTML at 1 MB/s.
LARGE: Final = 4096
_AT_ONCE: Final = 2  # requests of one caller with a body larger than usual
_HEAVY: Final = 262_144  # bytes; JSON may take up to 28 times as much memory once it is parsed
_OF_ALL: Final = 6  # such requests of all callers together


async def run_by_size(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that reads so many bytes of a request: in a thread if they are many, so that the event loop does not wait."""
    return await asyncio.to_thread(function, *args, **kwargs) if size > LARGE else function(*args, **kwargs)


@contextmanager
def counting(counts: Counter[K], name: K) -> Iterator[None]:
    """Count one more of this name for a while. A name of which none is left is removed."""
    counts[name] += 1
    try:
        yield
    finally:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


class LargeRequests:
    """Bounds what large requests take at once, at any interface. It belongs to one event loop.

    Bodies that are larger than usual are counted by caller while they are received. What a body is parsed to is in memory for one
    heavy request at a time: others wait for their turn, with only the bytes of their bodies, for at most so many seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._under_way: Counter[str] = Counter()
        self._turn = asyncio.Lock()
        self._seconds = seconds

    @asynccontextmanager
    async def take_turn(self, size: int) -> AsyncIterator[None]:
        """Wait until no other heavy request is read or carried out, if one of so many bytes is heavy. Raises Refused (BUSY)."""
        if size <= _HEAVY:
            yield
            return
        try:
            async with asyncio.timeout(self._seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise refuse_late() from None
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def hold(self, caller: str, *, large: bool) -> Iterator[None]:
        """Count a request while it is under way. Raises Refused (BUSY) if the caller, or all, have as many as allowed."""
        if not large:
            yield
            return
        if self._under_way[caller] >= _AT_ONCE:
            detail = say(
                "{at_once} large requests of this key are already in progress. Send this one again when they have finished.",
                at_once=_AT_ONCE,
            )
            raise Refused("BUSY", detail)
        if self._under_way.total() >= _OF_ALL:
            detail = say(
                "{of_all} large requests are already in progress, which is the limit of this service. Send this one again when "
                "some have finished.",
                of_all=_OF_ALL,
            )
            raise Refused("BUSY", detail)
        with counting(self._under_way, caller):
            yield
