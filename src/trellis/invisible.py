"""Invisible characters: characters that change the direction of text, and characters that show nothing."""

import re
import unicodedata
from typing import Final

_ISOLATE, _END = "\u2068", "\u2069"
_ISOLATES: Final = "\u2066\u2067\u2068"
DIRECTIONS: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BLANK: Final = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINER, _NON_JOINER, _EMOJI_STYLE, _TEXT_STYLE = "\u200d", "\u200c", "\ufe0f", "\ufe0e"
_BRAILLE_BLANK, _BRAILLE = "\u2800", re.compile("[\u2800-\u28ff]")
# Emoji with text and emoji styles that are not in the category So (Unicode's emoji-variation-sequences.txt).
_OTHER_EMOJI: Final = frozenset("\u203c\u2049\u2139\u2194\u25fb\u25fc\u25fd\u25fe\u2934\u2935\u3030\u303d")
# The flags of England, Scotland and Wales: a black flag followed by invisible letters (UTS 51, ED-14a).
_FLAG: Final = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
# Small letters of Cyrillic and Greek that look like Latin ones, themselves or as capitals (UTS 39, confusables.txt).
_LOOKALIKES: Final = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0475\u04af\u04bb\u04cf\u0501\u051b\u051d"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "abekmhopctyxsijvyhldqwabezhikmnoptyx",
)
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def find_invisible(text: str) -> int | None:
    """Return the position of the first character that shows nothing and has no effect; None if there is none.

    A blank of Braille has an effect within Braille. Joiners have an effect in scripts that join letters, and in emoji.
    Characters that select a style or a flag have one in emoji.
    """
    flags = {at for flag in _FLAG.finditer(text) for at in range(*flag.span())}
    places = (found.start() for found in _BLANK.finditer(text))
    return next((at for at in places if at not in flags and not _has_use(text, at)), None)


def remove_invisible(text: str) -> str:
    """Return a text without the characters that show nothing and have no effect, trimmed."""
    while (at := find_invisible(text)) is not None:
        text = text[:at] + text[at + 1 :]
    return text.strip()


def fold_lookalike(text: str) -> str:
    """Return the form in which texts are equal that readers take for the same.

    It has no case, spaces or invisible characters, and Latin letters in place of those that look like them.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(_BLANK.sub("", DIRECTIONS.sub("", folded)).split()).translate(_LOOKALIKES)


def _has_use(text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    if text[at] in _EMOJI_STYLE + _TEXT_STYLE:
        return _may_be_emoji(before) or after == "\u20e3"
    if text[at] in _JOINER + _NON_JOINER and after:
        if unicodedata.combining(before) == 9:  # a virama
            return True
        if text[at] == _NON_JOINER:
            return unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL"
        return _may_be_emoji(after) and (before == _EMOJI_STYLE or unicodedata.category(before) == "Sk" or _may_be_emoji(before))
    return text[at] == _BRAILLE_BLANK and all(map(_BRAILLE.match, (before, after)))


def _may_be_emoji(character: str) -> bool:
    return unicodedata.category(character) == "So" or character in _OTHER_EMOJI


def isolate(text: str) -> str:
    """Return a name in a form that cannot change the direction of the text around it (UAX 9).

    A name without characters that change the direction is returned unchanged.
    """
    if text.isascii() or not DIRECTIONS.search(text):
        return text
    kept: list[str] = []
    opened = 0
    for character in text:
        if character in _ISOLATES:
            opened += 1
        elif character == _END:
            if not opened:
                continue  # it would end the isolation of the name
            opened -= 1
        kept.append(character)
    return _ISOLATE + "".join(kept) + _END * (opened + 1)


def escape_unsafe(text: str) -> str:
    """Return a text that is safe to print in a terminal.

    Control characters (except tab and line feed), characters that change the direction of text, and lone surrogates are replaced by
    JSON escapes.
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
