"""A language, in which texts are looked up by their English text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from gettext import NullTranslations
from typing import Any, Final

import orjson

from trellis.languages import dates
from trellis.sentences import say_in


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
        return dates.format_day(at, self.code)

    def date(self, at: datetime) -> str:
        """Return a date: `29 Mar 2026`."""
        return dates.format_date(at, self.code)

    def long_date(self, at: datetime) -> str:
        """Return a date with its day of the week: `Sunday, 29 March 2026`."""
        return dates.format_long_date(at, self.code)

    def age(self, seconds: float) -> str:
        """Return how long ago something was, in its largest unit, or how far ahead it is: `3 minutes ago`, `in 90 days`."""
        if abs(seconds) < dates.SPANS["minute"]:
            return self.sentence(dates.JUST_NOW if seconds >= 0 else dates.IN_A_MOMENT)
        return dates.format_span(*dates.find_unit(seconds), self.code)

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


ENGLISH: Final = Language("en", "English")
