"""Rate windows: fixed periods of time, and how much was counted in each, in the memory of this process."""

import time
from typing import Final

_MANY: Final = 10_000  # windows from which on those that are over are thrown out


class RateWindows:
    """Counts by name. A window begins with the first count in it, and is forgotten some time after its end."""

    def __init__(self) -> None:
        self._open: dict[str, list[float]] = {}  # name → [count, end in Unix seconds]
        self._room = _MANY

    def count(self, name: str, seconds: int) -> tuple[int, float]:
        """Count one; give how many that makes, and when the window ends (Unix seconds)."""
        now = time.time()
        window = self._open.get(name)
        if window is None or window[1] <= now:
            if len(self._open) >= self._room:
                self._open = {other: kept for other, kept in self._open.items() if kept[1] > now}
                self._room = max(_MANY, 2 * len(self._open))  # so that throwing out stays cheap, however many there are
            window = self._open[name] = [0, now + seconds]
        window[0] += 1
        return int(window[0]), window[1]

    def seen(self, name: str) -> tuple[int, float]:
        """Give what was counted in the window that is open, and when it ends; 0 and this moment if none is."""
        now = time.time()
        count, end = self._open.get(name, (0, now))
        return (int(count), end) if end > now else (0, now)
