"""Times in searches of the event, request and delivery logs: the limit for one search, and timestamps before or after another.

A search that reaches the limit stops, and returns where to continue.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

LONGEST: Final = 0.03  # seconds


def begin() -> Callable[[], bool]:
    """Start the clock of a search; return a function that reports whether its time is over."""
    until = time.perf_counter() + LONGEST
    return lambda: time.perf_counter() > until


def shift(timestamp: str, seconds: float) -> str:
    """Return the timestamp so many seconds after another one; before it if the number is negative."""
    moved = datetime.fromisoformat(timestamp) + timedelta(seconds=seconds)
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")
