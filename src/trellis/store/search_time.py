"""The time limit for one search of the event, request or delivery log.

A search that reaches the limit stops, and returns where to continue.
"""

import time
from collections.abc import Callable
from typing import Final

LONGEST: Final = 0.03  # seconds, unless a search has a limit of its own


def begin(longest: float | None = None) -> Callable[[], bool]:
    """Start the clock of a search; return a function that reports whether its time is over."""
    until = time.perf_counter() + (LONGEST if longest is None else longest)
    return lambda: time.perf_counter() > until
