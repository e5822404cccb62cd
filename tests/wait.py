"""Waiting for something that another thread or process does."""

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], within: float = 1.0) -> float:
    """Ask until something holds; give after how many seconds it did. Fails if it does not in time."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < within, f"still not so after {within} s"
        time.sleep(0.001)
    return time.monotonic() - began
