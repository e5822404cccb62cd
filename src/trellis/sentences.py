"""Sentences that remember how they were made, so that the panel can say them in another language.

`say("There is no record with the id {id}.", id=7)` is a text like any other, in English, wherever nobody asks for more: over the
API, in the log, at the terminal. `say_in` makes it anew from its text and its values in the words of another language. The text is
written where it is used, and whole: scripts/catalogues.py finds it there, and other languages order words in their own way.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Self

_SEPARATORS: Final = ",."
_VALUE: Final = re.compile(r"\{(\w+)\}")
_ADVISED: Final = "{told} {advice}"  # the same in every language


class Sentence(str):
    """A sentence in English with what it was made from: its text, or the two of which its number chooses one, and its values."""

    __slots__ = ("texts", "values")

    texts: tuple[str, ...]
    values: Mapping[str, Any]

    def __new__(cls, shown: str, texts: tuple[str, ...], values: Mapping[str, Any]) -> Self:
        sentence = super().__new__(cls, shown)
        sentence.texts, sentence.values = texts, values
        return sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.texts, self.values)


def say(text: str, /, **values: Any) -> Sentence:
    """Return a sentence with values in it, as `str.format` does; a text without values may contain braces."""
    return Sentence(_fill(text, values), (text,), values)


def say_many(count: int, one: str, many: str, /, **values: Any) -> Sentence:
    """Return that of two sentences which belongs to a number; the number is `count` in them."""
    named = {"count": count, **values}
    return Sentence(_fill(one if count == 1 else many, named), (one, many), named)


def mark(text: str, /) -> str:
    """Return a text as it is, for the catalogues: its values are not known yet, and `say(text, …)` is called with it later."""
    return text


def mark_many(one: str, many: str, /) -> tuple[str, str]:
    """Return two texts as they are, as `mark` does, of which `say_many` chooses one later."""
    return one, many


class Stored:
    """Finds sentences again in what was stored of them, which is their English: that of each of these texts, with any values.

    A value may be another of these sentences, and a value of that one more. A text that is none of them stays as it is.
    """

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    @cached_property
    def _forms(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(_build_pattern(text), re.DOTALL), text) for text in self._texts]

    def read(self, text: str, depth: int = 3) -> str:
        """Return the sentence that a text was; `depth` is how many may be in each other."""
        for form, template in self._forms if text and depth else ():
            if found := form.fullmatch(text):
                return say(template, **{name: self.read(value, depth - 1) for name, value in found.groupdict().items()})
        return text


def _build_pattern(text: str) -> str:
    parts = _VALUE.split(text)
    return "".join(f"(?P<{part}>.+)" if number % 2 else re.escape(part) for number, part in enumerate(parts))


def format_seconds(count: int) -> Sentence:
    """Return a number of seconds, to stand in a sentence."""
    return say_many(count, "{count:,} second", "{count:,} seconds")


def join(sentences: Iterable[str], separator: str = " ") -> Sentence:
    """Return sentences one after the other; those among them that are a plain `str` stay as they are in every language."""
    values = {f"part{number}": one for number, one in enumerate(sentences)}
    return say(separator.join(f"{{{name}}}" for name in values), **values) if values else say("")


def advise(told: str, advice: str) -> Sentence:
    """Return a sentence, and behind it what a program is to send; a page that has a control for that leaves it out."""
    return say(_ADVISED, told=told, advice=advice)


def drop_advice(sentence: str) -> str:
    """Return a sentence without the advice that was given with it; any other as it is."""
    return sentence.values["told"] if isinstance(sentence, Sentence) and sentence.texts == (_ADVISED,) else sentence


class _Adapted(Sentence):
    """A sentence that is changed after it was said, in any language."""

    __slots__ = ("change",)

    change: "Change"

    def __reduce__(self) -> tuple[Any, ...]:
        return adapt, (self.values["sentence"], self.change)


Change = Callable[[str, Callable[[str], str]], str]


def adapt(sentence: str, change: Change) -> Sentence:
    """Return a sentence that `change` is applied to in each language; it is given the sentence, and what finds other texts."""
    adapted = _Adapted(change(str(sentence), str), ("{sentence}",), {"sentence": sentence})
    adapted.change = change
    return adapted


def say_in(
    sentence: str,
    find: Callable[[str], str],
    find_many: Callable[[str, str, int], str],
    separators: Mapping[int, str],
) -> str:
    """Return a sentence in another language. `find` and `find_many` return its texts, and the form that belongs to a number.

    `separators` translates those of numbers, in the sentence, as `str.translate` takes it. A plain `str` is returned as it is.
    """
    if not isinstance(sentence, Sentence):
        return sentence
    count = sentence.values.get("count")
    if isinstance(sentence, _Adapted):
        return sentence.change(say_in(sentence.values["sentence"], find, find_many, separators), find)
    one, *many = sentence.texts
    text = find_many(one, many[0], count) if many and isinstance(count, int) else find(one)
    values = {name: _in_words(value, find, find_many, separators) for name, value in sentence.values.items()}
    return _fill(text, values)


def _in_words(
    value: Any, find: Callable[[str], str], find_many: Callable[[str, str, int], str], separators: Mapping[int, str]
) -> Any:
    if isinstance(value, str):
        return say_in(value, find, find_many, separators)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _Number(value, separators) if is_number else value


def _fill(text: str, values: Mapping[str, Any]) -> str:
    return text.format_map(values) if values else text


class _Number:
    """A number that is written with another language's separators wherever its format has any: `{count:,}`, `{seconds:.1f}`."""

    def __init__(self, value: float, separators: Mapping[int, str]) -> None:
        self._value = value
        self._separators = separators

    def __format__(self, spec: str) -> str:
        shown = format(self._value, spec)
        return shown.translate(self._separators) if any(one in spec for one in _SEPARATORS) else shown

    def __repr__(self) -> str:
        return repr(self._value)

    def __str__(self) -> str:
        return str(self._value)
