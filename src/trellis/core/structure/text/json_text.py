"""Reads JSON (RFC 8259) with line numbers. The YAML parser cannot do that: it supports neither surrogate pairs nor long names."""

import re
from enum import Enum
from typing import Any, Final

import orjson

from trellis.core.structure.text.lined import Builder, LinedMapping, Unreadable, read_fraction, read_integer
from trellis.sentences import say

_BLANK: Final = re.compile(r"[ \t\r\n]*+")
_TOKEN: Final = re.compile(
    r'(?P<text>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<number>-?+(?:0|[1-9][0-9]*+)(?P<fraction>(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+))"
    r"|(?P<word>true|false|null)"
    r"|(?P<mark>[\[\]{}:,])",
    re.ASCII,
)
_WORDS: Final = {"true": True, "false": False, "null": None}
_CLOSING: Final = {"{": "}", "[": "]"}


class _Next(Enum):
    """What a text has to go on with, unless an object or a list may end there."""

    VALUE = say("a value")
    NAME = say("a name in quotes")
    COLON = "':'"
    COMMA = "','"
    NOTHING = say("nothing more")


class NotJson(Unreadable):
    """Raised if a text is not JSON, with the line and the reason."""


def looks_like_json(text: str) -> bool:
    """Return whether a text begins like a JSON object or list."""
    start = _BLANK.match(text)
    return start is not None and text[start.end() : start.end() + 1] in {"{", "["}


def read_json(text: str) -> Any:
    """Read a text that looks like JSON; objects become LinedMapping.

    Raises NotJson if it is not JSON, and another Unreadable if it is JSON but cannot be a document: it is nested too deeply, is too
    large, has a name twice, or contains a number of more than 40 digits or half of a surrogate pair.
    """
    return _Reader(text).read()


class _Reader:
    """Reads a text token by token. `_next` comes next; if `_may_end`, the innermost object or list may end instead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._at = 0
        self._builder = Builder()
        self._closing: list[str] = []
        self._next = _Next.VALUE
        self._may_end = False

    def read(self) -> Any:
        while True:
            self._skip_blanks()
            if self._next is _Next.NOTHING and self._at == len(self._text):
                return self._builder.value
            token = _TOKEN.match(self._text, self._at)
            if token is None:
                raise self._refuse()
            self._take(token, token["mark"])
            self._at = token.end()

    def _skip_blanks(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        if blank is not None:
            self._line += self._text.count("\n", self._at, blank.end())
            self._at = blank.end()

    def _refuse(self) -> NotJson:
        found = self._text[self._at : self._at + 1]
        if found == '"' and _TOKEN.match(self._text, self._at) is None:
            return NotJson(
                self._line, say("This is not JSON: a string does not end on its line, or has a character that must be escaped.")
            )
        what = repr(found) if found else say("the end of the text")
        expected: str = self._next.value
        if self._may_end:
            expected = say("{first} or {second}", first=expected, second=f"'{self._closing[-1]}'")
        return NotJson(self._line, say("This is not JSON: expected {expected}, not {what}.", expected=expected, what=what))

    def _take(self, token: re.Match[str], mark: str | None) -> None:
        if self._may_end and mark == self._closing[-1]:
            self._closing.pop()
            self._builder.end()
            self._end_value()
        elif self._next is _Next.VALUE and mark in _CLOSING:
            self._builder.begin(LinedMapping(self._line) if mark == "{" else [], self._line)
            self._closing.append(_CLOSING[mark])
            self._next, self._may_end = _Next.NAME if mark == "{" else _Next.VALUE, True
        elif self._next is _Next.VALUE and mark is None:
            self._builder.add(self._read_scalar(token), self._line)
            self._end_value()
        elif self._next is _Next.NAME and token["text"] is not None:
            self._builder.add(self._read_scalar(token), self._line)
            self._next, self._may_end = _Next.COLON, False
        elif self._next is _Next.COLON and mark == ":":
            self._next = _Next.VALUE
        elif self._next is _Next.COMMA and mark == ",":
            self._next, self._may_end = _Next.NAME if self._closing[-1] == "}" else _Next.VALUE, False
        else:
            raise self._refuse()

    def _end_value(self) -> None:
        self._may_end = bool(self._closing)
        self._next = _Next.COMMA if self._closing else _Next.NOTHING

    # --- values ---------------------------------------------------------------------------------------------------

    def _read_scalar(self, token: re.Match[str]) -> Any:
        if (text := token["text"]) is not None:
            return self._read_text(text) if "\\" in text else text[1:-1]
        if (number := token["number"]) is not None:
            return read_fraction(number, self._line) if token["fraction"] else read_integer(number, self._line)
        return _WORDS[token["word"]]

    def _read_text(self, text: str) -> Any:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            raise Unreadable(self._line, say("This text contains half of a surrogate pair, which is not a character.")) from None
