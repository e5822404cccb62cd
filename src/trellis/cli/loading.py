"""How modules are loaded quickly."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector off what is being loaded: all of it stays, and looking through it takes a tenth of the time."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
