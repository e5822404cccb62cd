"""The content of a structure document: its sections, entries and keys, each with its place in the document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.core.kind import NodeKind
from trellis.core.structure.text import LinedMapping
from trellis.errors import Refused
from trellis.sentences import join, say

_LONGEST_NAME: Final = 100  # characters of a member's name that a refusal repeats


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a document: the name of the file ("" if none), the line (None if unknown) and the path from the top."""

    file: str
    line: int | None
    path: str

    def tell(self) -> str:
        """Describe the place for people: the file and line, or the path if neither is known."""
        line = say("line {line}", line=self.line) if self.line else ""
        return join(filter(None, (self.file, line)), ", ") or self.path

    def at(self, owner: Any, member: str) -> "Location":
        """Return the place of a member of the mapping at this place."""
        line = owner.lines.get(member, self.line) if isinstance(owner, LinedMapping) else self.line
        shown = member[:_LONGEST_NAME]
        return Location(self.file, line, f"{self.path}.{shown}" if self.path else shown)

    def item(self, index: int, item: Any) -> "Location":
        """Return the place of an item of the list at this place."""
        return Location(self.file, item.line if isinstance(item, LinedMapping) else self.line, f"{self.path}[{index}]")


@dataclass(slots=True, eq=False)
class Placed:
    """What was read from a mapping of a document, the `source`, at a place."""

    place: Location
    source: Mapping[str, Any]

    def find_place(self, member: str) -> Location:
        """Return the place of a member, or of what it is in, such as `permissions`; of the whole mapping if that is not there."""
        name = member.partition(".")[0]
        return self.place.at(self.source, name) if name in self.source else self.place


@dataclass(slots=True, eq=False)
class Entry(Placed):
    """A node in a document. `values` are the members to set, in the form that the operations accept.

    `groups` are the members that name groups: a permission (`permissions.view`) or a field → "*" or external ids.
    """

    kind: NodeKind
    external_id: str
    name: str
    values: dict[str, Any]
    groups: dict[str, str | tuple[str, ...]]
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
    """The part of a document about one kind: all its nodes, or those below the node with the external id `under`."""

    kind: NodeKind
    place: Location
    under: str | None
    entries: list[Entry]

    def walk(self) -> Iterator[Entry]:
        """Yield all entries, parents before their children, siblings in order."""
        for entry in self.entries:
            yield from entry.walk()


@dataclass(slots=True, eq=False)
class KeyEntry(Placed):
    """An API key in a document: its settings, in the form that the operations on keys accept."""

    name: str
    settings: dict[str, Any]


def place_faults(refused: Refused, about: Placed | None, place: Location) -> list[tuple[Location, str]]:
    """Return the faults that an operation has found in an entry, each with its place; without one, all of them are at `place`."""
    found = [(place if about is None else about.find_place(fault.field), fault.detail) for fault in refused.faults]
    return found or [(place, refused.detail)]


@dataclass(slots=True)
class Document:
    """Everything that was sent together: one or more documents with the same name."""

    name: str = ""
    sections: list[Section] = field(default_factory=list)
    keys: list[KeyEntry] = field(default_factory=list)
    empty: list[Location] = field(default_factory=list)

    def walk(self) -> Iterator[Entry]:
        """Yield all entries of all sections."""
        for section in self.sections:
            yield from section.walk()
