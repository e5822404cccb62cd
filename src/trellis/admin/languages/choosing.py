"""Chooses the language of a page: the one chosen on the account page or before signing in, or that of the browser."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Final

from trellis.languages import catalogues
from trellis.languages.catalogues import load_language
from trellis.languages.language import ENGLISH, Language

_RANGE: Final = re.compile(r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|\*)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?")
_MOST_RANGES: Final = 20
_LONGEST_RANGE: Final = 100  # characters; each of its parts makes another text
_loaded: dict[tuple[str, str], Language] = {}


def list_languages() -> Mapping[str, str]:
    """Return the languages to choose from: each code with the language's own name."""
    return catalogues.OFFERED


def choose_language(*chosen: str, accepted: str = "") -> str:
    """Return the code of the first of these languages that is offered, or the one that Accept-Language prefers, or English."""
    offered = {code.lower(): code for code in catalogues.OFFERED}
    wanted = (*chosen, *_rank(accepted))
    return next((offered[code.lower()] for code in wanted if code.lower() in offered), ENGLISH.code)


def _rank(accepted: str) -> list[str]:
    """Return the languages of Accept-Language, the most wanted first, each followed by those that it is a variant of."""
    sent = accepted.split(",", _MOST_RANGES)[:_MOST_RANGES]
    ranges = [found for one in sent if len(one) <= _LONGEST_RANGE and (found := _RANGE.fullmatch(one))]
    ranked = sorted(ranges, key=lambda found: -float(found[2] or 1))
    return [code for found in ranked if float(found[2] or 1) for code in _widen(found[1])]


def _widen(code: str) -> Iterator[str]:
    """Yield a language and those that it is a variant of: `de-CH`, `de` (RFC 4647, lookup)."""
    while code:
        yield code
        code = code.rpartition("-")[0]


async def find_language(code: str) -> Language:
    """Return a language. Its texts are read once, in a thread."""
    if code == ENGLISH.code:
        return ENGLISH
    key = (code, str(catalogues.FOLDER))
    if key not in _loaded:
        _loaded[key] = await asyncio.to_thread(load_language, code, catalogues.FOLDER)
    return _loaded[key]
