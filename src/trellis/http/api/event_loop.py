"""Helpers for the event loop: results of the writer's thread, and values that are valid for one tick."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CompletionQueue:
    """Passes the results of the writer's thread to the event loop, with a single wake-up for all results of a commit.

    `asyncio.wrap_future` would wake the loop once for each future.
    """

    def __init__(self) -> None:
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._called = False

    async def wait_for(self, future: "Future[T]") -> T:
        """Wait for a future of the writer; return its result or raise its exception (CancelledError if it was cancelled)."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(partial(self._complete, loop, waiting))
        return await waiting

    def _complete(self, loop: asyncio.AbstractEventLoop, waiting: "asyncio.Future[Any]", future: "Future[Any]") -> None:
        """Queue a result and wake the event loop. It runs in the writer's thread."""
        self._done.append((waiting, future))
        if not self._called:
            self._called = True
            with suppress(RuntimeError):  # the loop has ended, so nobody is waiting
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._called = False  # first, so that a future that completes from here on schedules another call
        while self._done:
            waiting, future = self._done.popleft()
            if waiting.done():  # cancelled
                continue
            if future.cancelled():
                waiting.cancel()
            elif (error := future.exception()) is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(future.result())


class OncePerTick(Generic[T]):
    """Calls a function once per tick of the event loop and returns the same value until the tick ends; None is not cached."""

    def __init__(self, ask: Callable[[], T | None]) -> None:
        self._ask = ask
        self._value: T | None = None

    def __call__(self) -> T | None:
        """Return the value of this tick."""
        if self._value is None:
            self._value = self._ask()
            asyncio.get_running_loop().call_soon(self._forget)
        return self._value

    def renew(self) -> T | None:
        """Call the function again, and return its value, which is valid for the rest of this tick."""
        self._value = None
        return self()

    def _forget(self) -> None:
        self._value = None
