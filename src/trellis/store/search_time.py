"""How long one search of a log takes at most, be it of events, of requests or of deliveries.

It stops then, and says how far it has looked.
"""

import time
from collections.abc import Callable
from typing import Final

LONGEST: Final = 0.03  # seconds


def begin() -> Callable[[], bool]:
    """Begin a search; return what tells whether its time is over."""
    until = time.perf_counter() + LONGEST
    return lambda: time.perf_counter() > until
