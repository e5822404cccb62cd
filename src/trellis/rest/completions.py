"""From the writer's thread back to the event loop: all writes of one commit with one wake-up."""

import asyncio
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Arrivals:
    """Where the tasks of one event loop wait for the writer.

    `asyncio.wrap_future` does the same for one future, and wakes the loop for each of those that share a commit.
    """

    def __init__(self) -> None:
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._called = False

    async def of(self, future: "Future[T]") -> T:
        """Wait for what the writer does; give its result, or raise what it raised."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(partial(self._arrive, loop, waiting))
        return await waiting

    def _arrive(self, loop: asyncio.AbstractEventLoop, waiting: "asyncio.Future[Any]", future: "Future[Any]") -> None:
        """Run in the writer's thread."""
        self._done.append((waiting, future))
        if not self._called:
            self._called = True
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._called = False  # first: what is done from here on calls again
        while self._done:
            waiting, future = self._done.popleft()
            if waiting.done():  # whoever waited has been cancelled
                continue
            if (error := future.exception()) is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(future.result())
