"""The catalogues of languages: gettext files, one for each area, read when first needed."""

from collections.abc import Mapping
from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from trellis.languages.language import ENGLISH, Language

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

OFFERED: Final[dict[str, str]] = {"en": "English", "de": "Deutsch"}
"""The languages to choose from, by code, each with its own name. One is added when it is complete, as tests/languages checks."""

FOLDER: Final = Path(__file__).parent
SCRIPTS: Final = "scripts.po"  # the texts of the panel's scripts
_FORMS_AMONG: Final = range(1000)  # numbers among which every plural form of a language occurs


@cache
def load_language(code: str, folder: Path = FOLDER) -> Language:
    """Return a language with its texts. The first call takes a quarter of a second, so it belongs in a thread.

    English, and any language without a catalogue, uses the texts in the code.
    """
    if code == ENGLISH.code:
        return ENGLISH
    from babel import Locale  # noqa: PLC0415  # start-up time: many use the panel in English
    from babel.messages.mofile import write_mo  # noqa: PLC0415  # the same
    from babel.numbers import get_decimal_symbol, get_group_symbol  # noqa: PLC0415  # the same

    texts, compiled = read_catalogue(sorted((folder / code).glob("*.po")), code), BytesIO()
    for message in texts:
        message.string = _keep_together(message.string)
    write_mo(compiled, texts)
    compiled.seek(0)
    locale = Locale.parse(code, sep="-")
    separators = str.maketrans({",": get_group_symbol(locale), ".": get_decimal_symbol(locale)})
    return Language(
        code, OFFERED.get(code, locale.get_language_name() or code), GNUTranslations(compiled), separators, locale.text_direction
    )


def load_offered(code: str) -> Language:
    """Return a language that is offered, as `load_language` does; English for any other code."""
    return load_language(code if code in OFFERED else ENGLISH.code, FOLDER)


def read_catalogue(files: list[Path], code: str) -> "Catalog":
    """Read the texts of some files into one catalogue. The first file with a translation of a text provides it."""
    from babel.messages.catalog import Catalog  # noqa: PLC0415  # as above
    from babel.messages.pofile import read_po  # noqa: PLC0415  # as above

    whole = Catalog(code.replace("-", "_"), fuzzy=False)
    for file in files:
        with file.open("rb") as content:
            for message in read_po(content, code.replace("-", "_"), abort_invalid=True):
                known = whole.get(message.id)
                if message.id and (known is None or not _is_translated(known.string)):
                    whole[message.id] = message
    return whole


def _keep_together(string: Any) -> Any:
    """Return a text, or its forms, in which no line ends between the E and the rest of *E-Mail*."""
    if isinstance(string, tuple | list):
        return tuple(map(_keep_together, string))
    return string.replace("E-Mail", "E\N{NON-BREAKING HYPHEN}Mail") if string else string


def _is_translated(string: Any) -> bool:
    return all(string) if isinstance(string, tuple | list) else bool(string)


def read_script_catalogues() -> dict[str, bytes]:
    """Return the files with the texts of scripts, by language, for a digest of them."""
    files = ((code, FOLDER / code / SCRIPTS) for code in sorted(OFFERED))
    return {code: file.read_bytes() for code, file in files if file.exists()}


def encode_script_texts(code: str) -> bytes | None:
    """Return the texts of scripts in a language as JSON; None for one that is not offered."""
    return orjson.dumps(list_script_texts(code, FOLDER)) if code in OFFERED else None


@cache
def list_script_texts(code: str, folder: Path = FOLDER) -> Mapping[str, str | Mapping[str, str]]:
    """Return the texts of scripts in a language, by the English text; counted ones by the English plural and CLDR's form."""
    from babel import Locale  # noqa: PLC0415  # as above

    file = folder / code / SCRIPTS
    if not file.exists():
        return {}
    catalogue, locale = load_language(code, folder).catalogue, Locale.parse(code, sep="-")
    texts: dict[str, str | Mapping[str, str]] = {}
    for message in read_catalogue([file], code):
        if isinstance(message.id, list | tuple):
            one, many = message.id
            texts[many] = {locale.plural_form(count): catalogue.ngettext(one, many, count) for count in _FORMS_AMONG}
        elif message.id and message.string:
            texts[message.id] = catalogue.gettext(message.id)
    return texts
