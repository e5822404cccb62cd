"""Timestamps as they are stored, returned and logged: `2026-01-31T09:30:00.000Z`, always 24 characters."""

from datetime import UTC, datetime, timedelta
from typing import Final

CLOCKS_DIFFER: Final = timedelta(minutes=1)  # by which the clocks of two machines may differ, at most
MOST_AHEAD: Final = timedelta(hours=1)  # a stored time that is further ahead comes from a clock that was ahead


def format_timestamp(when: datetime) -> str:
    """Format a timestamp."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shift_timestamp(timestamp: str, span: timedelta) -> str:
    """Return the timestamp a span later than another one; earlier if the span is negative."""
    return format_timestamp(datetime.fromisoformat(timestamp) + span)
