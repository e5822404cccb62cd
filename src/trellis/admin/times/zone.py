"""The time zone in which the server writes every time that a page shows, and reads every time that is typed.

No script is involved: pages are the same without scripts, and the browser's own zone is used only if no other was chosen.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfo

from trellis.core.fields import PLAIN_ZONE, find_zone, format_timestamp
from trellis.languages import ENGLISH, Language
from trellis.sentences import adapt

ZONE: Final = "_zone"  # the field beside a typed time: the time zone in which the form showed it
EXACT: Final = "_exact."  # precedes the field with its exact timestamp: an hour that occurs twice is ambiguous
_STORED: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")  # as `format_timestamp` writes a moment
_TYPED: Final = 16  # characters of a time as a browser's control has it: 2026-03-29T02:30


@dataclass(frozen=True)  # without slots: the cached property needs a __dict__
class Clock:
    """A time zone by its name. `home` is the time zone that was chosen, which is the same unless UTC is shown instead.

    `language` is the language of the dates that people read.
    """

    name: str = PLAIN_ZONE
    home: str = PLAIN_ZONE
    language: Language = ENGLISH

    @cached_property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return find_zone(self.name) or ZoneInfo(PLAIN_ZONE)

    def at(self, moment: str) -> datetime:
        """Return a moment in this time zone. A moment without an offset is in UTC.

        A moment so close to the end of the calendar that this zone has no date for it is returned in UTC: a key may expire at the
        end of 9999.
        """
        when = datetime.fromisoformat(moment)
        when = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
        try:
            return when.astimezone(self.zone)
        except OverflowError:
            return when

    def day(self, moment: str) -> str:
        """Return the date of a moment: `2026-03-29`."""
        return f"{self.at(moment):%Y-%m-%d}"

    def offset(self, moment: str) -> str:
        """Return how far the zone is from UTC at a moment: `UTC`, `UTC+2`, `UTC+5:45`."""
        minutes = round((self.at(moment).utcoffset() or timedelta()).total_seconds() / 60)
        if not minutes:
            return PLAIN_ZONE
        hours, rest = divmod(abs(minutes), 60)
        return f"{PLAIN_ZONE}{'+' if minutes > 0 else '-'}{hours}{f':{rest:02}' if rest else ''}"

    def full(self, moment: str) -> str:
        """Format a moment to the minute: `29 Mar 2026, 03:30 UTC+2`."""
        at = self.at(moment)
        return f"{self.language.date(at)}, {at:%H:%M} {self.offset(moment)}"

    def short(self, moment: str) -> str:
        """Format a moment to the minute, as in lists and logs: `2026-03-29 03:30 UTC+2`."""
        return f"{self.at(moment):%Y-%m-%d %H:%M} {self.offset(moment)}"

    def exact(self, moment: str) -> str:
        """Format a moment to the second, as in logs."""
        return f"{self.at(moment):%Y-%m-%d %H:%M:%S} {self.offset(moment)}"

    def tell(self, sentence: str) -> str:
        """Return a sentence, such as a fault, with each timestamp in it formatted as in logs, in this time zone."""
        if _STORED.search(sentence) is None:
            return sentence
        return adapt(sentence, lambda said, _: _STORED.sub(lambda found: self.exact(found[0]), said))

    # --- what is typed ----------------------------------------------------------------------------------------------

    def show_typed(self, moment: str) -> str:
        """Return a moment as a browser's control expects it. Text that is not a time is returned unchanged."""
        try:
            return f"{self.at(moment):%Y-%m-%dT%H:%M}"
        except (ValueError, OverflowError):
            return moment

    def read_typed(self, text: str, exact: str = "") -> str:
        """Return the moment that a typed time stands for, in UTC; `exact` is the moment that its form showed.

        In an hour that occurs twice, the first of the two is meant, unless the form showed the second; a time in an hour that is
        skipped is read as if the clocks had not been changed. Text that is not a time is returned unchanged, for the operation to
        refuse.
        """
        try:
            when = datetime.fromisoformat(text)
            if when.tzinfo is not None:
                return format_timestamp(when)
            if exact and self.show_typed(exact) == text[:_TYPED]:
                return exact
            return format_timestamp(when.replace(tzinfo=self.zone))
        except (ValueError, OverflowError):
            return text

    def is_twice(self, moment: str) -> bool:
        """Return whether the control cannot show exactly which moment it has: it has no seconds, and an hour may occur twice."""
        try:
            return self.read_typed(self.show_typed(moment)) != format_timestamp(self.at(moment))
        except (ValueError, OverflowError):
            return False

    def reading(self, typed: Mapping[str, str]) -> "Clock":
        """Return the clock for reading a form: in the form's own zone, since another may have been chosen after it was shown."""
        name = typed.get(ZONE, "")
        return self if find_zone(name) is None else Clock(name, self.home, self.language)


UTC_CLOCK: Final = Clock()


def find_clock(chosen: str, browser: str, *, shows_utc: bool, language: Language = ENGLISH) -> Clock:
    """Return the clock for the time zone that was chosen, or else the one that the browser reports, or else UTC."""
    home = next((name for name in (chosen, browser) if find_zone(name) is not None), PLAIN_ZONE)
    return Clock(PLAIN_ZONE if shows_utc else home, home, language)
