"""How much memory something takes at its peak: what Python allocates, and on SQLite what the library does."""

import tracemalloc
from types import TracebackType
from typing import Self

from trellis.store import sqlite


class MemoryMeter:
    """While it is entered, follows what is allocated in all threads. `peak` is the most beyond what there was before, in bytes.

    What libpq reads is not among it, nor what SQLite has read into its caches of pages, which are bounded. Of a write, only what
    Python allocates tells anything: SQLite's cache has other pages while it runs than after that.
    """

    def __init__(self, *, of_write: bool = False) -> None:
        self.peak = 0
        self._before = self._pages = 0
        self._of_write = of_write

    def __enter__(self) -> Self:
        tracemalloc.start()
        self._pages, used, _ = _measure_library()
        self._before = used - self._pages
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> None:
        pages, _, most = _measure_library()  # pages may be given back meanwhile, by whatever used the library before
        library = 0 if self._of_write else max(0, most - max(pages, self._pages) - self._before)
        self.peak = tracemalloc.get_traced_memory()[1] + library
        tracemalloc.stop()


def _measure_library() -> tuple[int, int, int]:
    """Return how much memory the library uses for pages, and for everything, and the most for everything since the last call."""
    if not sqlite.HAS_APSW:
        return 0, 0, 0
    import apsw  # noqa: PLC0415  # it is not there on every machine

    pages, _ = apsw.status(apsw.SQLITE_STATUS_PAGECACHE_OVERFLOW)
    return pages, apsw.memory_used(), apsw.memory_high_water(True)  # noqa: FBT003  # from now on
