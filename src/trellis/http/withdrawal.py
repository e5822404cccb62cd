"""Withdraws a write that waits for its turn if its client has gone, or if it has waited too long."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import TypeVar

from trellis.http.asgi import Receive, call_when_gone
from trellis.store.engine import refuse_closed, refuse_late, refuse_unfinished

T = TypeVar("T")


async def wait_for_write(future: Future[T], waiting: Awaitable[T], receive: Receive, seconds: float) -> T:
    """Wait for a future of the writer by awaiting `waiting`; return its result or raise its exception.

    A write that has not begun when the client disconnects, or after so many seconds, never begins; Refused (BUSY) is raised.
    `receive` reports the disconnection once the body has been read. A write that has begun is waited for, unless the request is
    cancelled, as the server does at the end of the process: then, too, Refused (BUSY) is raised.
    """
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, future.cancel)
    watching = loop.create_task(call_when_gone(receive, future.cancel))
    try:
        return await waiting
    except asyncio.CancelledError:
        if future.cancelled():
            raise refuse_late() from None
        # The request itself is cancelled: the service is stopping, and has waited long enough.
        raise (refuse_closed() if future.cancel() else refuse_unfinished()) from None
    finally:
        timer.cancel()
        watching.cancel()
