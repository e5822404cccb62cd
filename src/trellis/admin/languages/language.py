"""A language, and its texts by those in English."""

from dataclasses import dataclass, field
from gettext import NullTranslations
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its code (BCP 47), its own name, and the catalogue of its texts."""

    code: str
    name: str
    catalogue: NullTranslations = field(default_factory=NullTranslations)

    def text(self, text: str) -> str:
        """Return a text in this language; one that the catalogue does not have stays in English."""
        return self.catalogue.gettext(text) if text else text

    def counted(self, one: str, many: str, count: int) -> str:
        """Return that of a text's forms which belongs to a number."""
        return self.catalogue.ngettext(one, many, count)

    def number(self, value: int) -> str:
        """Return a number with thousands separators."""
        return f"{value:,}"


ENGLISH: Final = Language("en", "English")
