"""Parsing the header Retry-After, in which another server asks to be left alone for a time."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 24 * 3600  # seconds


def parse_retry_after(retry_after: str | None) -> float:
    """Return the seconds of a Retry-After header, which contains seconds or a date: at most a day, and 0 if it is invalid."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), _LONGEST))
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # OverflowError for a number that no date can have
        return 0.0
    ahead = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(0.0, ahead), _LONGEST)
