"""A language, and its texts by those in English."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from gettext import NullTranslations
from typing import Final

from trellis.sentences import say_in


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its code (BCP 47), its own name, the catalogue of its texts, and what it writes instead of , and . in numbers."""

    code: str
    name: str
    catalogue: NullTranslations = field(default_factory=NullTranslations)
    separators: Mapping[int, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Return a text in this language; one that the catalogue does not have stays in English."""
        return self.catalogue.gettext(text) if text else text

    def counted(self, one: str, many: str, count: int) -> str:
        """Return that of a text's forms which belongs to a number."""
        return self.catalogue.ngettext(one, many, count)

    def sentence(self, sentence: str) -> str:
        """Return a sentence that knows how it was made (trellis.sentences) in this language; another text stays as it is."""
        return say_in(sentence, self.text, self.counted, self.separators)

    def number(self, value: int) -> str:
        """Return a number with thousands separators."""
        return f"{value:,}".translate(self.separators)


ENGLISH: Final = Language("en", "English")
