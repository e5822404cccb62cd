"""Timestamps: how they are parsed."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trellis.core.fields.type import Invalid, quote
from trellis.sentences import say
from trellis.timestamps import format_timestamp


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
