"""Timestamps: how they are parsed, stored and formatted."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trellis.core.fields.type import Invalid, quote
from trellis.sentences import say


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A timestamp in ISO 8601. It is stored in UTC with milliseconds and Z, so that sorting the text sorts by time.

    A timestamp without an offset is read as UTC.
    """

    nullable: bool = False
    widget: str = "datetime-local"

    def parse(self, raw: Any) -> str | None:
        if self.nullable and raw in (None, ""):
            return None
        try:
            # A '+' of an offset that was not percent-encoded in a URL arrives as a space.
            value = datetime.fromisoformat(re.sub(r" (?=\d\d:\d\d\Z)", "+", raw.strip()))
            return format_timestamp(value if value.tzinfo else value.replace(tzinfo=UTC))
        except (ValueError, AttributeError, TypeError, OverflowError):
            raise Invalid(
                say("must be a timestamp in ISO 8601, such as 2026-01-31T09:30:00Z, not {raw}.", raw=quote(raw))
            ) from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"] if self.nullable else "string", "format": "date-time"}


def format_timestamp(when: datetime) -> str:
    """Format a timestamp as it is stored and returned: `2026-01-31T09:30:00.000Z`, always 24 characters."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shift_timestamp(timestamp: str, span: timedelta) -> str:
    """Return the timestamp a span later than another one; earlier if the span is negative."""
    return format_timestamp(datetime.fromisoformat(timestamp) + span)
