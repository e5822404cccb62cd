"""Where a request is read: in place if it is short, in a thread if it is long, so that nobody waits for it."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Bytes of a request from which on reading it takes longer than to hand it to a thread and back (0.1 ms): JSON is read at
# 10 to 100 MB/s, nested lists, forms and HTML at 1.
LARGE: Final = 4096


async def run_by_size(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that reads so many bytes of a request; the event loop does not wait for it if these are many."""
    return await asyncio.to_thread(function, *args, **kwargs) if size > LARGE else function(*args, **kwargs)
