"""What the searches of the event, request and delivery logs have in common: their time limit, and the form of their results.

A search that reaches the limit stops, and returns where to continue.
"""

import time
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

LONGEST: Final = 0.03  # seconds, unless a search has a limit of its own

Found = TypeVar("Found")
Position = TypeVar("Position")


class SearchResult(NamedTuple, Generic[Found, Position]):
    """What a search has found. `next` is the position beyond which to continue; None if there is nothing more.

    `complete` is False if the time limit ended the search; of events, `searched_to` is then the time of the last one examined.
    """

    found: list[Found]
    next: Position | None
    complete: bool = True
    searched_to: str | None = None


def start_clock(longest: float | None = None) -> Callable[[], bool]:
    """Start the clock of a search; return a function that reports whether its time is over."""
    until = time.perf_counter() + (LONGEST if longest is None else longest)
    return lambda: time.perf_counter() > until
