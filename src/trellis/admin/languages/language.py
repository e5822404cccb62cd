"""A language, and its texts by those in English."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from gettext import NullTranslations
from typing import Any, Final

import orjson

from trellis.sentences import say_in


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its code (BCP 47), its own name, and the catalogue of its texts.

    `separators` are what it writes instead of , and . in numbers; `direction` is that of its script.
    """

    code: str
    name: str
    catalogue: NullTranslations = field(default_factory=NullTranslations)
    separators: Mapping[int, str] = field(default_factory=dict)
    direction: str = "ltr"

    def text(self, text: str) -> str:
        """Return a text in this language; one that the catalogue does not have stays in English."""
        return self.catalogue.gettext(text) if text else text

    def counted(self, one: str, many: str, count: int) -> str:
        """Return that of a text's forms which belongs to a number."""
        return self.catalogue.ngettext(one, many, count)

    def sentence(self, sentence: str) -> str:
        """Return a sentence that knows how it was made (trellis.sentences) in this language; another text stays as it is."""
        return say_in(sentence, self.text, self.counted, self.separators)

    def encode(self, value: Any) -> bytes:
        """Return a value as JSON, with its sentences in this language."""
        return orjson.dumps(value, self._plain, orjson.OPT_PASSTHROUGH_SUBCLASS)

    def _plain(self, value: Any) -> Any:
        """Return what JSON has for a value of a subclass of one that it has."""
        if isinstance(value, str):
            return str(self.sentence(value))
        if isinstance(value, dict):
            return dict(value)
        raise TypeError(type(value))

    def number(self, value: int) -> str:
        """Return a number with thousands separators."""
        return f"{value:,}".translate(self.separators)


ENGLISH: Final = Language("en", "English")
