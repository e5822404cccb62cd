"""The types of what the fixtures give: a clock, and functions that run operations, make keys and list events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from trellis.core.fields import format_timestamp


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    at: datetime = field(default_factory=lambda: datetime(2026, 1, 31, 9, 30, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.at

    def move(self, **span: float) -> None:
        """Move the clock: `move(hours=1)`; backwards with negative numbers."""
        self.at += timedelta(**span)

    @property
    def text(self) -> str:
        """The moment as records and events tell it."""
        return format_timestamp(self.at)


class Run(Protocol):
    """Runs an operation as the terminal and gives its value: `run("forums.update", 3, name="News")`."""

    def __call__(self, operation: str, target: int | None = None, /, **raw: Any) -> Any: ...


class MakeKey(Protocol):
    """Makes an API key and gives its text: `key(["forums.list"], expires="1d")`; a single grant may be a word."""

    def __call__(self, grants: str | Iterable[str] = (), /, **settings: Any) -> str: ...


Events = Callable[[], list[dict[str, Any]]]
RunForEvent = Callable[..., int]  # runs a write as the terminal, as Run does, and gives the number of its event
