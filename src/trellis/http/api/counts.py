"""What a process counts of the requests that it answers, for monitoring."""

from bisect import bisect_left
from collections import Counter
from typing import Final

# Seconds: the upper bounds of the classes of durations; the last class has none.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_BOUNDS: Final = tuple(int(bound * 1_000_000) for bound in BOUNDS)


class Durations:
    """How long requests took: how many in each class of durations, and the sum in microseconds."""

    __slots__ = ("classes", "total")

    def __init__(self) -> None:
        self.classes = [0] * (len(BOUNDS) + 1)
        self.total = 0


class RequestCounts:
    """Requests by interface, operation and class of status; their durations; refusals by reason and key; use of the cache.

    `requests` counts by interface such as api, operation ("" where none was found), and first digit of the status. One thread
    counts, any may read.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.durations: dict[tuple[str, str], Durations] = {}
        self.refusals: Counter[tuple[str, int]] = Counter()  # by message and id of the key; 0 is none
        self.hits = 0
        self.misses = 0

    def count_lookup(self, *, found: bool) -> None:
        """Count a read, for which an answer was found in memory or not."""
        if found:
            self.hits += 1
        else:
            self.misses += 1

    def count(self, interface: str, operation: str, status: int, duration: int, refused: str | None, key: int | None) -> None:
        """Count a request that took so many microseconds."""
        self.requests[interface, operation, status // 100] += 1
        durations = self.durations.get((interface, operation))
        if durations is None:
            durations = self.durations[interface, operation] = Durations()
        durations.classes[bisect_left(_BOUNDS, duration)] += 1
        durations.total += duration
        if refused is not None:
            self.refusals[refused, key or 0] += 1
