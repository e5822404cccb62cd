"""What a structure document holds: its sections, entries and keys, each with its place in what was sent."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.core.kind import NodeKind
from trellis.core.structure.text import LinedMapping
from trellis.sentences import join, say

_LONGEST_NAME: Final = 100  # characters of a member's name that a refusal repeats


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: the file, if it has a name, the line, if it is known, and the path from the top of the document."""

    file: str
    line: int | None
    path: str

    def __str__(self) -> str:
        return str(self.tell())

    def tell(self) -> str:
        """Return where it is, for people."""
        line = say("line {line}", line=self.line) if self.line else ""
        return join(filter(None, (self.file, line)), ", ") or self.path

    def at(self, owner: Any, member: str) -> "Place":
        """Return the place of a member of the mapping that stands here."""
        line = owner.lines.get(member, self.line) if isinstance(owner, LinedMapping) else self.line
        shown = member[:_LONGEST_NAME]
        return Place(self.file, line, f"{self.path}.{shown}" if self.path else shown)

    def item(self, index: int, item: Any) -> "Place":
        """Return the place of an item of the list that stands here."""
        return Place(self.file, item.line if isinstance(item, LinedMapping) else self.line, f"{self.path}[{index}]")


@dataclass(slots=True, eq=False)
class Entry:
    """A node that the document has. `values` are the members to set, as the operations take them.

    `groups` are those that name groups: a permission (`permissions.view`) or a field → "*" or external ids.
    """

    kind: NodeKind
    place: Place
    external_id: str
    name: str
    values: dict[str, Any]
    groups: dict[str, str | tuple[str, ...]]
    places: dict[str, Place]
    children: "list[Entry]" = field(default_factory=list)

    def walk(self) -> "Iterator[Entry]":
        """Yield the entry and all below it, parents before their children, siblings in order."""
        waiting = [self]
        while waiting:
            entry = waiting.pop()
            yield entry
            waiting.extend(reversed(entry.children))


@dataclass(slots=True)
class Section:
    """What a document says of one kind: all of it, or what is below the node with the external id `under`."""

    kind: NodeKind
    place: Place
    under: str | None
    entries: list[Entry]

    def walk(self) -> Iterator[Entry]:
        """Yield all entries, parents before their children, siblings in order."""
        for entry in self.entries:
            yield from entry.walk()


@dataclass(slots=True)
class KeyEntry:
    """An API key that the document has: its settings, as the operations on keys take them, and their places."""

    place: Place
    name: str
    settings: dict[str, Any]
    places: dict[str, Place]


@dataclass(slots=True)
class Document:
    """Everything that was sent together: one or more documents with the same name."""

    name: str = ""
    sections: list[Section] = field(default_factory=list)
    keys: list[KeyEntry] = field(default_factory=list)
    empty: list[Place] = field(default_factory=list)

    def walk(self) -> Iterator[Entry]:
        """Yield all entries of all sections."""
        for section in self.sections:
            yield from section.walk()
