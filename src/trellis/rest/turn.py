"""What is asked for once in a turn of the event loop."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class OncePerTurn(Generic[T]):
    """Asks when it is called first, and gives the same until the turn is over; None is asked for again."""

    def __init__(self, ask: Callable[[], T | None]) -> None:
        self._ask = ask
        self._told: T | None = None

    def __call__(self) -> T | None:
        """Give what was told in this turn."""
        if self._told is None:
            self._told = self._ask()
            asyncio.get_running_loop().call_soon(self._forget)
        return self._told

    def _forget(self) -> None:
        self._told = None
