"""Runs reads that wait for the network or for the writer in threads."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, ParamSpec, TypeVar

from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.sentences import say
from trellis.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

_LONG_AT_ONCE: Final = 2  # each may take 250 MiB of memory


async def read_in_thread(seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a read in a thread. Raises Refused (BUSY) if it has not ended after so many seconds, even if it never began."""
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.to_thread(function, *args, **kwargs)
    except TimeoutError:
        raise refuse_unanswered() from None


async def follow_fork(gate: Gate, call: Call, seconds: float) -> Call:
    """Return the call that a forking operation leads to. On PostgreSQL it is found in a thread. Raises Refused."""
    return gate.follow(call) if gate.store.reads_inline else await read_in_thread(seconds, gate.follow, call)


class SharedRead(Generic[T]):
    """A read in a thread of its own, since the shared threads may all be taken. Callers who ask while it runs share its result."""

    def __init__(self, thread: str, read: Callable[[], T]) -> None:
        self._thread = ThreadPoolExecutor(1, thread)
        self._read = read
        self._running: asyncio.Future[T] | None = None

    async def run(self) -> T:
        """Return the result of the read, or raise its exception. Callers limit their own waiting: the read goes on for others."""
        if self._running is None or self._running.done():
            self._running = asyncio.wrap_future(self._thread.submit(self._read))
            self._running.add_done_callback(lambda read: read.cancelled() or read.exception())  # nobody may wait for it
        return await asyncio.shield(self._running)

    def close(self) -> None:
        """Let the thread end when it has finished its current read."""
        self._thread.shutdown(wait=False)


class LimitedReads:
    """A few threads of their own, `at_once`, for reads that must not keep other reads waiting.

    At most `room` reads wait for one of these threads, each for at most so many seconds; `refuse` makes the refusal of others.
    """

    def __init__(self, name: str, at_once: int, room: int, seconds: float, refuse: Callable[[], Refused]) -> None:
        self._threads = ThreadPoolExecutor(at_once, name)  # each thread is created when it is needed
        self._most = room + at_once
        self._seconds = seconds
        self._refuse = refuse
        self._held = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Run a read. Raises Refused (BUSY) if too many are already waiting, or if it could not begin in time."""
        if self._held >= self._most:
            raise self._refuse()
        self._held += 1
        try:
            until = time.monotonic() + self._seconds
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run_in_time, function, until)
        finally:
            self._held -= 1

    def _run_in_time(self, function: Callable[[], T], until: float) -> T:
        if time.monotonic() > until:
            raise self._refuse()
        return function()

    def close(self) -> None:
        """Let the threads end when they have finished their current reads; those that wait are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def make_long_reads(settings: Settings) -> LimitedReads:
    """Return the threads of a process for reads that are long, or turn out to be: all interfaces share them."""
    seconds = settings.database_pool_timeout + settings.database_read_timeout
    return LimitedReads("trellis-long", _LONG_AT_ONCE, settings.write_queue, seconds, refuse_unanswered)


def refuse_unanswered() -> Refused:
    """Return the refusal of a read that has not ended in time."""
    return Refused("BUSY", say("The database did not answer in time. Nothing was changed; try again."))


def refuse_uncounted() -> Refused:
    """Return the refusal of a counted read that could not begin in time."""
    return Refused(
        "BUSY", say("Too many reads that count towards a daily limit are waiting. Nothing was read or counted; try again.")
    )
