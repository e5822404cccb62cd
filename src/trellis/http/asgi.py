"""ASGI: the types of its calls, and what the application leaves for the server in the state of the lifespan."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ENDING: Final = "trellis.ending"  # in the state: functions to call before the server waits for requests under way


async def receive_nothing() -> MutableMapping[str, Any]:
    """Stand in for `receive` where no body is read."""
    return {}
