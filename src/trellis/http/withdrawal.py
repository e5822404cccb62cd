"""A write that waits for its turn is withdrawn when its client has gone, or when it has waited for too long."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future
from typing import Any, TypeVar

from trellis.store.engine import refuse_late

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def wait_for_write(future: Future[T], waiting: Awaitable[T], receive: Receive, seconds: float) -> T:
    """Wait for a future of the writer, by `waiting`; return its result or raise its exception.

    What has not begun when the client of the request goes, as `receive` tells once the body is read, or after so many seconds,
    never begins. Raises Refused (BUSY) then. What has begun is waited for.
    """
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, future.cancel)
    watching = loop.create_task(_withdraw_for_gone_client(receive, future))
    try:
        return await waiting
    except asyncio.CancelledError:
        if not future.cancelled():  # it is the request itself that is ended
            raise
        raise refuse_late() from None
    finally:
        timer.cancel()
        watching.cancel()


async def _withdraw_for_gone_client(receive: Receive, future: Future[Any]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    future.cancel()
