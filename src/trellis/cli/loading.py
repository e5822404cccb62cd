"""Speeds up the loading of modules."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause garbage collection while modules load: nothing can be freed, and scanning takes a tenth of the time."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
