"""The time limit for one search of the event, request or delivery log.

A search that reaches the limit stops, and returns where to continue.
"""

import time
from collections.abc import Callable
from typing import Final

LONGEST: Final = 0.03  # seconds


def begin() -> Callable[[], bool]:
    """Start the clock of a search; return a function that reports whether its time is over."""
    until = time.perf_counter() + LONGEST
    return lambda: time.perf_counter() > until
