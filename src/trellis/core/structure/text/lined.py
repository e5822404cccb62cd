"""Builds the values that are read from a text, with their line numbers, and limits their depth and number."""

from typing import Any, Final

from trellis.sentences import say

DEEPEST: Final = 250  # levels of mappings and lists; a node takes two
MOST_ENTRIES: Final = 10_000  # nodes and keys, which are the mappings in lists
MOST_VALUES: Final = 1_000_000
MOST_MAPPINGS: Final = 100_000  # each takes 400 bytes, and a node has two; without them, a document of 3 MB would take 400
_LONGEST_NAME: Final = 100  # characters of a name that a refusal repeats


class LinedMapping(dict[str, Any]):
    """A mapping that was read from a text, with its line and the lines of its members. Lines are counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class Unreadable(Exception):
    """Raised if a text cannot be read as a document, with the line and the reason."""

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(f"line {line}: {detail}")
        self.line = line
        self.detail = detail


def tell_too_many_entries() -> str:
    """Return the sentence about a document, or the documents of a plan, with more nodes and keys than `MOST_ENTRIES`."""
    return say(
        "There are more than {most:,} nodes and keys. Write several documents, and plan and apply them one by one: one for each "
        "section, or, of a larger section, one for each part, with an under of its own.",
        most=MOST_ENTRIES,
    )


class Builder:
    """Builds a value from its parts, without recursion, so that a text of any depth can be read until it is refused here.

    `add` and `begin` raise Unreadable for a name that is not text or appears twice, and for too many levels, entries, mappings or
    values.
    """

    def __init__(self) -> None:
        self._root: list[Any] = []
        self._open: list[_Open] = [_Open(self._root)]
        self._count = 0
        self._entries = 0
        self._mappings = 0

    @property
    def value(self) -> Any:
        """The value that was built; None if nothing was added."""
        return self._root[0] if self._root else None

    def add(self, value: Any, line: int) -> None:
        """Add a value; in a mapping, add names and values in turn."""
        self._count += 1
        if self._count > MOST_VALUES:
            raise Unreadable(
                line, say("The document has more than {most_values:,} values. Split it by section.", most_values=MOST_VALUES)
            )
        self._open[-1].add(value, line)

    def begin(self, value: LinedMapping | list[Any], line: int) -> None:
        """Add a mapping or a list, which receives everything that is added until it ends."""
        self.add(value, line)
        is_mapping = isinstance(value, LinedMapping)
        self._mappings += is_mapping
        self._entries += is_mapping and len(self._open) > 1 and isinstance(self._open[-1].value, list)
        if self._entries > MOST_ENTRIES:  # now, and not when it is all in memory
            raise Unreadable(line, tell_too_many_entries())
        if self._mappings > MOST_MAPPINGS:
            raise Unreadable(line, say("The document has more than {most:,} mappings. Split it by section.", most=MOST_MAPPINGS))
        if len(self._open) > DEEPEST:
            raise Unreadable(line, say("This is nested more than {deepest} levels deep.", deepest=DEEPEST))
        self._open.append(_Open(value))

    def end(self) -> None:
        """End the innermost mapping or list."""
        self._open.pop()


class _Open:
    """A mapping or a list that has not ended yet."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.name: str | None = None

    def add(self, value: Any, line: int) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.name is not None:
            self.value[self.name] = value
            self.name = None
        else:
            if not isinstance(value, str):
                raise Unreadable(line, say("A name must be text. Put it in quotes."))
            if value in self.value:
                shown = value[:_LONGEST_NAME]
                raise Unreadable(
                    line,
                    say(
                        "'{shown}' appears here for the second time; it is already on line {lines}.",
                        shown=shown,
                        lines=self.value.lines[value],
                    ),
                )
            self.name = value
            self.value.lines[value] = line


def read_integer(text: str, line: int) -> int:
    """Convert a text to a whole number. Raises Unreadable if it has more than 40 digits."""
    return int(_check_digits(text, line))


def read_fraction(text: str, line: int) -> float:
    """Convert a text to a fraction. Raises Unreadable if it has more than 40 digits, including those of its exponent."""
    return float(_check_digits(text, line))


def _check_digits(text: str, line: int) -> str:
    if sum(map(str.isdigit, text)) > 40:
        raise Unreadable(line, say("This number has more than 40 digits."))
    return text
