"""Rate windows: fixed periods of time with a count for each, in the memory of this process.

Time is measured by the monotonic clock: setting the machine's clock neither prolongs nor ends a window.
"""

import time
from typing import Final

_MANY: Final = 10_000  # number of windows from which on expired ones are removed


class RateWindows:
    """Counts by name. A window begins with the first count in it, and is removed some time after its end.

    With `most`, the oldest windows are dropped before their end if there would be more: for names that any caller can make up.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._open: dict[str, list[float]] = {}  # name → [count, end]
        self._room = _MANY

    def count(self, name: str, seconds: int) -> tuple[int, float]:
        """Add one; return the count, and the seconds until the window ends."""
        now = time.monotonic()
        window = self._open.get(name)
        if window is None or window[1] <= now:
            self._open.pop(name, None)  # so that the oldest come first
            if self._most is not None and len(self._open) >= self._most:
                del self._open[next(iter(self._open))]
            elif len(self._open) >= self._room:
                self._open = {other: kept for other, kept in self._open.items() if kept[1] > now}
                self._room = max(_MANY, 2 * len(self._open))  # so that removing stays cheap, however many there are
            window = self._open[name] = [0, now + seconds]
        window[0] += 1
        return int(window[0]), window[1] - now

    def count_below(self, name: str, limit: int) -> tuple[int, float] | None:
        """Add one to the open window, and return what `count` does; None, counting nothing, if there is none or it is full."""
        now = time.monotonic()
        window = self._open.get(name)
        if window is None or window[1] <= now or window[0] >= limit:
            return None
        window[0] += 1
        return int(window[0]), window[1] - now
