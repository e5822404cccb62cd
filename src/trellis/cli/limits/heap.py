"""Gives the memory of large requests and responses back to the system."""

import ctypes
from typing import Final

# Options of glibc's mallopt, in bytes.
_TRIM_THRESHOLD: Final = -1
_MAP_THRESHOLD: Final = -3
_MOST_ARENAS: Final = -8  # a number

_LARGE: Final = 81_920  # bytes; larger allocations are mapped by themselves, and so are given back as soon as they are free
_SPARE: Final = 1_048_576  # bytes that are kept at the end of the heap


def keep_heap_small() -> None:
    """Make this process give back large allocations as soon as they are free, if its C library is glibc; elsewhere do nothing.

    By default glibc maps only allocations that are larger than any it has freed so far, up to 32 MiB: after one large request, all
    others are placed between allocations that stay, and the heap is left with holes. Setting a threshold ends that. By default each
    thread also has a heap of its own, whose holes no other thread can use; threads that hold the interpreter's lock need only one.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    set_option(_MOST_ARENAS, 1)
    set_option(_MAP_THRESHOLD, _LARGE)
    set_option(_TRIM_THRESHOLD, _SPARE)
