"""Reads JSON (RFC 8259) with line numbers. The YAML parser cannot do that: it supports neither surrogate pairs nor long names."""

import re
from collections.abc import Callable
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
_VALUE: Final = say("a value")
_NAME: Final = say("a name in quotes")


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


def _either(first: str, second: str) -> str:
    return say("{first} or {second}", first=first, second=second)


class _Reader:
    """Reads a text token by token. `_next` is the `_expect_…` method for the next token; None if the value is complete."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._at = 0
        self._builder = Builder()
        self._closing: list[str] = []
        self._next: Callable[[re.Match[str]], None] | None = self._expect_value
        self._expected: str = _VALUE

    def read(self) -> Any:
        while True:
            self._skip_blanks()
            if self._next is None and self._at == len(self._text):
                return self._builder.value
            token = _TOKEN.match(self._text, self._at)
            if token is None or self._next is None:
                raise self._refuse()
            self._next(token)
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
        expected = say("nothing more") if self._next is None else self._expected
        return NotJson(self._line, say("This is not JSON: expected {expected}, not {what}.", expected=expected, what=what))

    # --- what may come next ---------------------------------------------------------------------------------------

    def _expect_value(self, token: re.Match[str]) -> None:
        mark = token["mark"]
        if mark is None:
            self._builder.add(self._read_scalar(token), self._line)
            self._expect_after_value()
        elif mark in _CLOSING:
            self._builder.begin(LinedMapping(self._line) if mark == "{" else [], self._line)
            self._closing.append(_CLOSING[mark])
            self._next, self._expected = (
                (self._expect_first_name, _either(_NAME, "'}'"))
                if mark == "{"
                else (self._expect_first_value, _either(_VALUE, "']'"))
            )
        else:
            raise self._refuse()

    def _expect_first_value(self, token: re.Match[str]) -> None:
        self._expect_mark_or(token, self._expect_value)

    def _expect_first_name(self, token: re.Match[str]) -> None:
        self._expect_mark_or(token, self._expect_name)

    def _expect_mark_or(self, token: re.Match[str], otherwise: Callable[[re.Match[str]], None]) -> None:
        if token["mark"] == self._closing[-1]:
            self._end()
        else:
            otherwise(token)

    def _expect_name(self, token: re.Match[str]) -> None:
        if token["text"] is None:
            raise self._refuse()
        self._builder.add(self._read_scalar(token), self._line)
        self._next, self._expected = self._expect_colon, "':'"

    def _expect_colon(self, token: re.Match[str]) -> None:
        if token["mark"] != ":":
            raise self._refuse()
        self._next, self._expected = self._expect_value, _VALUE

    def _expect_comma_or_end(self, token: re.Match[str]) -> None:
        if token["mark"] == self._closing[-1]:
            self._end()
        elif token["mark"] == ",":
            in_object = self._closing[-1] == "}"
            self._next, self._expected = (self._expect_name, _NAME) if in_object else (self._expect_value, _VALUE)
        else:
            raise self._refuse()

    def _end(self) -> None:
        self._closing.pop()
        self._builder.end()
        self._expect_after_value()

    def _expect_after_value(self) -> None:
        self._next = self._expect_comma_or_end if self._closing else None
        self._expected = _either("','", f"'{self._closing[-1]}'") if self._closing else ""

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
