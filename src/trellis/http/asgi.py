"""ASGI: the types of its calls, and what the application leaves for the server in the state of the lifespan."""

from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final, TypeVar

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ENDING: Final = "trellis.ending"  # in the state: functions to call before the server waits for requests under way


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits to its end, in the current thread. Raises RuntimeError if it waits for something."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what the coroutine returned
    coroutine.close()
    raise RuntimeError("the coroutine waited for something")


async def call_when_gone(receive: Receive, function: Callable[[], object]) -> None:
    """Call a function when the client has disconnected. What is left of the body of the request is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass
    function()


async def receive_nothing() -> MutableMapping[str, Any]:
    """Stand in for `receive` where no body is read."""
    return {}
