"""Requests that wait for something to happen. Each holds a socket and some memory, but no thread and no database connection.

While there are any, one task of the event loop checks for all of them whether the data version has changed. On PostgreSQL the
version is in memory, where the notification of a commit puts it; on SQLite a commit of another process notifies nobody, and the
version is read with a pragma. The task therefore checks ten times a second on both, and a commit of one process wakes the waiting
requests of all.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from trellis.errors import Refused
from trellis.http.asgi import Receive, call_when_gone
from trellis.http.large import counting
from trellis.sentences import say, say_many

_LOOK_EVERY: Final = 0.1  # seconds
_LONGEST_PAUSE: Final = 1.0  # seconds between two reads of one request, if the changes do not concern it


@dataclass(slots=True, eq=False)
class _Waiting:
    """A waiting request: woken when the data version differs from the one `seen`, but not before the time `not_before`."""

    woken: asyncio.Event
    seen: int | None
    not_before: float


class WaitingRequests:
    """The waiting requests of this process. It belongs to one event loop.

    `find_version` returns the data version, or None if it is unknown. At most `per_key` requests of one caller and `most` requests
    in all may wait.
    """

    def __init__(self, find_version: Callable[[], int | None], per_key: int, most: int) -> None:
        self._find_version = find_version
        self._per_key = per_key
        self._most = most
        self._held: Counter[str] = Counter()
        self._waiting: set[_Waiting] = set()
        self._looking: asyncio.Task[None] | None = None
        self._ended = False

    @property
    def count(self) -> int:
        """The number of waiting requests."""
        return self._held.total()

    def end(self) -> None:
        """End all waiting, now and from now on: the process is about to end."""
        self._ended = True
        for one in self._waiting:
            one.woken.set()

    @contextmanager
    def _hold(self, caller: str) -> Iterator[None]:
        if self._held[caller] >= self._per_key or self.count >= self._most:
            detail = (
                say_many(
                    self._per_key,
                    "{count:,} request from this key is already waiting. Leave out wait, or wait for it to finish.",
                    "{count:,} requests from this key are already waiting. Leave out wait, or wait for these to finish.",
                )
                if self._held[caller] >= self._per_key
                else say("As many requests as allowed are already waiting. Leave out wait, or wait for these to finish.")
            )
            raise Refused("TOO_MANY_WAITING", detail)
        with counting(self._held, caller):
            yield

    async def wait(
        self, caller: str, seconds: float, receive: Receive, seen: Callable[[], int | None], read: Callable[[], Awaitable[bool]]
    ) -> None:
        """Whenever the data have changed, call `read`, until it returns True or so many seconds have passed.

        `seen` returns the data version of the last read. When the time is over, `read` is called once more; when the client has
        gone or the process is to end, this returns at once. Raises Refused if too many requests wait, and whatever `read` raises.
        """
        if self._ended:
            return
        clock = asyncio.get_running_loop().time
        until, pause = clock() + seconds, _LOOK_EVERY
        with self._hold(caller):
            one = _Waiting(asyncio.Event(), seen(), 0.0)
            watching = asyncio.create_task(call_when_gone(receive, one.woken.set))
            try:
                while not self._ended:
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(until):
                            await self._wait_for_change(one)
                    if watching.done() or self._ended:
                        return
                    one.woken.clear()  # before the read, during which the client may go
                    if await read() or clock() >= until:
                        return
                    one.seen, one.not_before = seen(), clock() + pause
                    pause = min(2 * pause, _LONGEST_PAUSE)
            finally:
                watching.cancel()

    async def _wait_for_change(self, one: _Waiting) -> None:
        self._waiting.add(one)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await one.woken.wait()
        finally:
            self._waiting.discard(one)

    async def _look(self) -> None:
        """Check for changes while requests wait."""
        clock = asyncio.get_running_loop().time
        try:
            while self._waiting:
                await asyncio.sleep(_LOOK_EVERY)
                version, now = self._find_version(), clock()
                for one in self._waiting:
                    if version is not None and version != one.seen and now >= one.not_before:
                        one.woken.set()
        finally:
            self._looking = None
