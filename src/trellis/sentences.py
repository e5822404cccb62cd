"""Sentences that keep their template and values, so that the panel can translate them.

`say("There is no record with the id {id}.", id=7)` is an ordinary string in English: in the API, in the log and at the terminal.
`say_in` builds the sentence again from the translated template and the values. Write each template where it is used, and as a whole
sentence, since scripts/catalogues.py collects them there, and other languages have another word order.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Self

_SEPARATORS: Final = ",."
_LIMITS: Final = frozenset(("least", "most", "longest"))  # the names of values that are limits
_VALUE: Final = re.compile(r"\{(\w+)\}")
_ADVISED: Final = "{told} {advice}"  # the same in every language, as is the next one
_SEPARATE: Final = "{limit:,}"


class Sentence(str):
    """A sentence in English with its values and its template, or two templates of which its number selects one."""

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
    """Return a sentence with its values inserted, as by `str.format`. If no values are passed, the text may contain braces."""
    return _tell((text,), values)


def say_many(count: int, one: str, many: str, /, **values: Any) -> Sentence:
    """Return the sentence `one` or `many`, depending on a number, which is available as `{count}` in both."""
    return _tell((one, many), {**values, "count": count})


def _tell(texts: tuple[str, ...], values: Mapping[str, Any]) -> Sentence:
    return Sentence(_fill(texts[0 if values.get("count") == 1 else -1], values), texts, values)


def mark(text: str, /) -> str:
    """Return a text unchanged, but mark it for translation. Its values are not known yet: `say(text, …)` is called later."""
    return text


def mark_many(one: str, many: str, /) -> tuple[str, str]:
    """Return two texts unchanged, marked for translation as by `mark`. `say_many` selects one of them later."""
    return one, many


class Stored:
    """Recognises sentences that were stored in English, by matching the templates that were added with any values.

    A value may be another such sentence, which may contain a third one. A text that matches no template stays as it is.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> str:
        """Add a template, and return it. Those that were added first are tried first."""
        self._texts.append(text)
        return text

    @cached_property
    def _forms(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(_build_pattern(text), re.DOTALL), text) for text in self._texts]

    def read(self, text: str, depth: int = 3) -> str:
        """Return the sentence from which a text was stored. `depth` is how deeply sentences may be nested."""
        for form, template in self._forms if text and depth else ():
            if found := form.fullmatch(text):
                return say(template, **{name: self.read(value, depth - 1) for name, value in found.groupdict().items()})
        return text


def _build_pattern(text: str) -> str:
    parts = _VALUE.split(text)
    return "".join(f"(?P<{part}>.+)" if number % 2 else re.escape(part) for number, part in enumerate(parts))


def format_seconds(count: int) -> Sentence:
    """Return a number of seconds in words, as a part of a sentence."""
    return say_many(count, "{count:,} second", "{count:,} seconds")


def join(sentences: Iterable[str], separator: str = " ") -> Sentence:
    """Join sentences to one. A plain `str` among them stays the same in every language."""
    values = {f"part{number}": one for number, one in enumerate(sentences)}
    return say(separator.join(f"{{{name}}}" for name in values), **values) if values else say("")


def advise(told: str, advice: str) -> Sentence:
    """Return a sentence followed by advice on what a program should send. Pages that have a control for it drop the advice."""
    return say(_ADVISED, told=told, advice=advice)


def drop_advice(sentence: str) -> str:
    """Return a sentence without the advice that `advise` added; any other text as it is."""
    return sentence.values["told"] if isinstance(sentence, Sentence) and sentence.texts == (_ADVISED,) else sentence


def separate_limits(sentence: str) -> str:
    """Return a sentence in which limits have thousands separators, also where its text does not ask for them."""
    if not isinstance(sentence, Sentence) or isinstance(sentence, _Adapted):
        return sentence
    plain = {name for text in sentence.texts for name in _VALUE.findall(text)}
    values = {name: _separate(name, value) if name in plain else value for name, value in sentence.values.items()}
    return _tell(sentence.texts, values)


def _separate(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return separate_limits(value)
    return say(_SEPARATE, limit=value) if name in _LIMITS else value


class _Adapted(Sentence):
    """A sentence to which a function is applied after translation."""

    __slots__ = ("change",)

    change: "Change"

    def __reduce__(self) -> tuple[Any, ...]:
        return adapt, (self.values["sentence"], self.change)


Change = Callable[[str, Callable[[str], str]], str]


def adapt(sentence: str, change: Change) -> Sentence:
    """Return a sentence that `change` modifies in each language.

    `change` receives the sentence in that language, and a function that translates other texts.
    """
    adapted = _Adapted(change(str(sentence), str), ("{sentence}",), {"sentence": sentence})
    adapted.change = change
    return adapted


def say_in(
    sentence: str,
    find: Callable[[str], str],
    find_many: Callable[[str, str, int], str],
    separators: Mapping[int, str],
) -> str:
    """Return a sentence in another language. A plain `str` is returned as it is.

    `find` translates a template, and `find_many` returns the translation for a number. `separators` is a table for `str.translate`
    that translates the separators within numbers.
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
    """A number that is written with another language's separators if its format has any, as in `{count:,}` or `{seconds:.1f}`."""

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
