"""Formats dates and time spans in a language: in English by this module, in other languages by CLDR."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from trellis.sentences import say

SPANS: Final[Mapping[str, int]] = {"year": 86_400 * 365, "month": 86_400 * 30, "day": 86_400, "hour": 3600, "minute": 60}
_LONG_AHEAD: Final = 86_400 * 120  # seconds ahead from which months are exact enough
_NEVER: Final = 1e9  # of a unit: the number from which Babel would take a larger one
_SKELETONS: Final = {"day": "MMMd", "date": "yMMMd"}  # of CLDR

JUST_NOW: Final = say("just now")
IN_A_MOMENT: Final = say("in a moment")


def find_unit(seconds: float) -> tuple[int, str]:
    """Return a span of at least a minute in its largest unit; the number is negative for a time ahead.

    A span ahead is rounded, and is in days up to four months, so that a new key of 90 days expires in 90 days.
    """
    span = abs(seconds)
    if seconds < 0 and SPANS["day"] <= span < _LONG_AHEAD:
        return -round(span / SPANS["day"]), "day"
    unit = next(unit for unit, length in SPANS.items() if span >= length)
    return (int(span // SPANS[unit]), unit) if seconds >= 0 else (-round(span / SPANS[unit]), unit)


def format_span(count: int, unit: str, code: str) -> str:
    """Format how many units ago something was; a negative number is ahead."""
    if code == "en":
        counted = f"{abs(count):,} {unit}{'' if abs(count) == 1 else 's'}"
        return f"{counted} ago" if count >= 0 else f"in {counted}"
    from babel.dates import format_timedelta  # noqa: PLC0415  # start-up time: many use the panel in English

    span = timedelta(seconds=-count * SPANS[unit])
    return format_timedelta(span, granularity=unit, threshold=_NEVER, add_direction=True, locale=code.replace("-", "_"))  # type: ignore[arg-type]


def format_day(at: datetime, code: str) -> str:
    """Format a day: `29 Mar`."""
    return f"{at.day} {at:%b}" if code == "en" else _format(at, "day", code)


def format_date(at: datetime, code: str) -> str:
    """Format a date: `29 Mar 2026`."""
    return f"{at.day} {at:%b %Y}" if code == "en" else _format(at, "date", code)


def format_long_date(at: datetime, code: str) -> str:
    """Format a date with its day of the week: `Sunday, 29 March 2026`."""
    if code == "en":
        return f"{at:%A}, {at.day} {at:%B %Y}"
    from babel.dates import format_date as format_in_full  # noqa: PLC0415  # as above

    return format_in_full(at, "full", locale=code.replace("-", "_"))


def _format(at: datetime, length: str, code: str) -> str:
    from babel.dates import format_skeleton  # noqa: PLC0415  # as above

    return format_skeleton(_SKELETONS[length], at, locale=code.replace("-", "_"))
