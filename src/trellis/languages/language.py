"""A language: its texts, found by their English text, and its dates and spans, formatted by CLDR, in English by this module."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from gettext import NullTranslations
from typing import Any, Final

import orjson

from trellis.sentences import say, say_in

_ENGLISH: Final = "en"
_SPANS: Final[Mapping[str, int]] = {"year": 86_400 * 365, "month": 86_400 * 30, "day": 86_400, "hour": 3600, "minute": 60}
_LONG_AHEAD: Final = 86_400 * 120  # seconds ahead from which months are exact enough
_NEVER: Final = 1e9  # of a unit: the number from which Babel would take a larger one
_JUST_NOW: Final = say("just now")
_IN_A_MOMENT: Final = say("in a moment")


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its code (BCP 47), its own name, and the catalogue of its texts.

    `separators` replace the , and . in numbers; `direction` is the direction of its script.
    """

    code: str
    name: str
    catalogue: NullTranslations = field(default_factory=NullTranslations, compare=False)
    separators: Mapping[int, str] = field(default_factory=dict, compare=False)
    direction: str = "ltr"

    def text(self, text: str) -> str:
        """Return a text in this language. A text that the catalogue does not have stays in English."""
        return self.catalogue.gettext(text) if text else text

    def counted(self, one: str, many: str, count: int) -> str:
        """Return the form of a text for a number."""
        return self.catalogue.ngettext(one, many, count)

    def sentence(self, sentence: str) -> str:
        """Return a Sentence (trellis.sentences) in this language. Any other text is returned unchanged."""
        return say_in(sentence, self.text, self.counted, self.separators)

    def day(self, at: datetime) -> str:
        """Return a day: `29 Mar`."""
        return f"{at.day} {at:%b}" if self.code == _ENGLISH else self._format(at, "MMMd")

    def date(self, at: datetime) -> str:
        """Return a date: `29 Mar 2026`."""
        return f"{at.day} {at:%b %Y}" if self.code == _ENGLISH else self._format(at, "yMMMd")

    def long_date(self, at: datetime) -> str:
        """Return a date with its day of the week: `Sunday, 29 March 2026`."""
        if self.code == _ENGLISH:
            return f"{at:%A}, {at.day} {at:%B %Y}"
        from babel.dates import format_date  # noqa: PLC0415  # start-up time: many use the panel in English

        return format_date(at, "full", locale=self._locale)

    def _format(self, at: datetime, skeleton: str) -> str:
        from babel.dates import format_skeleton  # noqa: PLC0415  # as above

        return format_skeleton(skeleton, at, locale=self._locale)

    def age(self, seconds: float) -> str:
        """Return how long ago something was, in its largest unit, or how far ahead it is: `3 minutes ago`, `in 90 days`."""
        if abs(seconds) < _SPANS["minute"]:
            return self.sentence(_JUST_NOW if seconds >= 0 else _IN_A_MOMENT)
        count, unit = _find_unit(seconds)
        if self.code == _ENGLISH:
            counted = f"{abs(count):,} {unit}{'' if abs(count) == 1 else 's'}"
            return f"{counted} ago" if count >= 0 else f"in {counted}"
        from babel.dates import format_timedelta  # noqa: PLC0415  # as above

        span = timedelta(seconds=-count * _SPANS[unit])
        return format_timedelta(span, granularity=unit, threshold=_NEVER, add_direction=True, locale=self._locale)  # type: ignore[arg-type]

    @property
    def _locale(self) -> str:
        return self.code.replace("-", "_")

    def encode(self, value: Any) -> bytes:
        """Return a value as JSON, with its sentences in this language."""
        return orjson.dumps(value, self._plain, orjson.OPT_PASSTHROUGH_SUBCLASS)

    def _plain(self, value: Any) -> Any:
        """Return a plain str in this language, or a plain dict, for a value of a subclass: orjson leaves those to this function."""
        if isinstance(value, str):
            return str(self.sentence(value))
        if isinstance(value, dict):
            return dict(value)
        raise TypeError(type(value))

    def number(self, value: int) -> str:
        """Return a number with thousands separators."""
        return f"{value:,}".translate(self.separators)


def _find_unit(seconds: float) -> tuple[int, str]:
    """Return a span of at least a minute in its largest unit; the number is negative for a time ahead.

    A span ahead is rounded, and is in days up to four months, so that a new key of 90 days expires in 90 days.
    """
    span = abs(seconds)
    if seconds < 0 and _SPANS["day"] <= span < _LONG_AHEAD:
        return -round(span / _SPANS["day"]), "day"
    unit = next(unit for unit, length in _SPANS.items() if span >= length)
    return (int(span // _SPANS[unit]), unit) if seconds >= 0 else (-round(span / _SPANS[unit]), unit)


ENGLISH: Final = Language(_ENGLISH, "English")
