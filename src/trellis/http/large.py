"""Decides where a request is read: in place if it is short, in a thread if it is long, so that no other request waits for it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from trellis.errors import Refused
from trellis.sentences import say

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")

# Requests with more bytes than this take longer to read than to hand to a thread and back (0.1 ms): JSON is read at 10 to 100 MB/s,
# nested lists, forms and HTML at 1 MB/s.
LARGE: Final = 4096
_AT_ONCE: Final = 2  # requests of one caller with a body larger than usual: each may take a hundred megabytes of memory
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
    """Counts the requests with bodies that are larger than usual, by caller. It belongs to one thread."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()

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
