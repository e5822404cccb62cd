"""Reads that wait for the network, in threads."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from trellis.errors import Refused

P = ParamSpec("P")
T = TypeVar("T")


async def read_in_thread(seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a read in a thread. Raises Refused (BUSY) if it has not ended after so many seconds, even if it has not begun."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(function, *args, **kwargs), seconds)
    except TimeoutError:
        raise Refused("BUSY", "The database did not answer in time. Nothing was changed; try again.") from None
