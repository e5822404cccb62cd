"""Rate windows in Redis, in which several processes count together.

A process counts in memory and reports its new counts to Redis after 100 ms, or earlier if there are many: for all windows in one
pipelined round trip, which also fetches the counts of the other processes. A caller sets how many counts of a window may not have
been reported yet; with more, the request waits for the round trip. All processes together can therefore exceed a limit by at most
this number for each process. The first request of a window always waits.
"""

import asyncio
import logging
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = logging.getLogger(__name__)

_EVERY: Final = 0.1  # seconds from a count to the round trip that reports it
_MOST: Final = 10_000  # windows that a process keeps
_WARN_EVERY: Final = 60  # seconds between warnings: anybody can send many requests
_PATIENCE: Final = 1.0  # seconds within which a round trip has to end: requests wait for it
_REST: Final = 5.0  # seconds without a round trip after one that has timed out
_PREFIX: Final = "trellis/"


class _Window:
    """The state of a window in a process: the count from Redis, the process's own counts since, and when the window ends."""

    __slots__ = ("end", "fetched_at", "total", "unreported")

    def __init__(self, end: float) -> None:
        self.total = 0  # the count of all processes, as Redis has returned it
        self.unreported = 0  # counts of this process that are not reported yet
        self.end = end  # on the monotonic clock
        self.fetched_at = -math.inf

    @property
    def count(self) -> int:
        return self.total + self.unreported


class SharedWindows:
    """Counts by name, in windows of so many seconds. While Redis does not answer, nothing is counted, and nobody waits for it."""

    def __init__(self, url: str, seconds: int) -> None:
        from redis.asyncio import from_url  # noqa: PLC0415  # start-up time: few services count in Redis

        self._redis: Redis = from_url(url)
        self._seconds = seconds
        self._open: dict[str, _Window] = {}
        self._changed: dict[str, _Window] = {}  # windows for the next round trip
        self._round_trip: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._warned_at = -math.inf
        self._silent_until = -math.inf

    async def count(self, name: str, behind: int) -> tuple[int, float]:
        """Add one; return the count as far as it is known, and the seconds until the window ends.

        When this returns, at most `behind` counts of this process are not yet reported to Redis.
        """
        now = time.monotonic()
        if self._is_silent():
            return 0, float(self._seconds)
        window = self._open.get(name)
        is_new = window is None or window.end <= now
        if window is None or is_new:
            window = self._begin(name, now)
        window.unreported += 1
        self._changed[name] = window
        if is_new or window.unreported > behind:
            await self._report()
        else:
            self._report_soon(window, behind)
        return self._read(name, window)

    def count_below(self, name: str, limit: int, behind: int) -> tuple[int, float] | None:
        """Add one as `count` does; return None, counting nothing, if that would have to wait or the window is full."""
        window = self._open.get(name)
        if window is None or window.end <= time.monotonic() or window.unreported >= behind or window.count >= limit:
            return None
        window.unreported += 1
        self._changed[name] = window
        self._report_soon(window, behind)
        return self._read(name, window)

    def is_open(self, name: str) -> bool:
        """Return whether this process has counted in a window of this name that is not over."""
        window = self._open.get(name)
        return window is not None and window.end > time.monotonic()

    async def fetch(self, name: str) -> tuple[int, float]:
        """Return what `count` does, at most 100 ms old, for a window with counts of this process; 0 and 0 if there is none."""
        now = time.monotonic()
        if (window := self._open.get(name)) is None or window.end <= now:
            return 0, 0.0
        if now - window.fetched_at > _EVERY:
            self._changed[name] = window
            await self._report()
        return self._read(name, window)

    def _begin(self, name: str, now: float) -> _Window:
        self._open.pop(name, None)  # so that the oldest come first
        if len(self._open) >= _MOST:
            self._open = {other: kept for other, kept in self._open.items() if kept.end > now}
        if len(self._open) >= _MOST:
            del self._open[next(iter(self._open))]
        window = self._open[name] = _Window(now + self._seconds)
        return window

    def _read(self, name: str, window: _Window) -> tuple[int, float]:
        if self._open.get(name) is not window:  # Redis did not answer
            return 0, float(self._seconds)
        return window.count, max(0.0, window.end - time.monotonic())

    def _report_soon(self, window: _Window, behind: int) -> None:
        if 2 * window.unreported > behind:
            self._start()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self._start)

    # --- the round trip -----------------------------------------------------------------------------------------------

    async def _report(self) -> None:
        """Wait until all counts so far are reported."""
        if self._round_trip is not None:  # it may have begun before the latest counts
            await asyncio.shield(self._round_trip)
        if not self._is_silent():
            await asyncio.shield(self._start())

    def _is_silent(self) -> bool:
        """Return whether a round trip has timed out within the last seconds."""
        return time.monotonic() < self._silent_until

    def _start(self) -> "asyncio.Task[None]":
        """Begin a round trip, unless one is under way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._round_trip is None:
            self._round_trip = asyncio.get_running_loop().create_task(self._run_round_trip())
        return self._round_trip

    async def _run_round_trip(self) -> None:
        changed, self._changed = self._changed, {}
        sent = {name: window.unreported for name, window in changed.items()}
        try:
            pipeline = self._redis.pipeline(transaction=False)
            for name, more in sent.items():
                pipeline.set(_PREFIX + name, 0, ex=self._seconds, nx=True)
                pipeline.incrby(_PREFIX + name, more)
                pipeline.pttl(_PREFIX + name)
            async with asyncio.timeout(_PATIENCE):
                answers = await pipeline.execute()
                lefts = await self._find_ends(list(sent), answers[2::3])
        except TimeoutError:
            self._silent_until = time.monotonic() + _REST
            self._give_up(f"it took longer than {_PATIENCE:g} s")
        except Exception as error:  # noqa: BLE001  # a counter that is down, for whatever reason, must not take the service down
            self._give_up(error)
        else:
            now = time.monotonic()
            for (name, window), count, left in zip(changed.items(), answers[1::3], lefts, strict=True):
                window.total, window.fetched_at = int(count), now
                window.unreported -= sent[name]
                window.end = now + max(0, int(left)) / 1000
        finally:
            self._round_trip = None
            if self._changed and self._timer is None:  # counted meanwhile
                self._timer = asyncio.get_running_loop().call_later(_EVERY, self._start)

    async def _find_ends(self, names: list[str], lefts: list[int]) -> list[int]:
        """Return the number of milliseconds until each window ends.

        A window that expired between two commands has begun anew without an end, and gets one here.
        """
        endless = [name for name, left in zip(names, lefts, strict=True) if left < 0]
        for name in endless:
            await self._redis.expire(_PREFIX + name, self._seconds)
        return [self._seconds * 1000 if name in endless else left for name, left in zip(names, lefts, strict=True)]

    def _give_up(self, reason: object) -> None:
        self._open.clear()
        self._changed.clear()
        if (now := time.monotonic()) - self._warned_at >= _WARN_EVERY:
            self._warned_at = now
            log.warning("Requests are not counted, since Redis does not answer: %s", reason)

    async def close(self) -> None:
        """Report the remaining counts, and close the connections."""
        if self._timer is not None:
            with suppress(Exception):
                await self._report()
        if self._round_trip is not None:
            await asyncio.shield(self._round_trip)
        await self._redis.aclose()
