"""The content of a structure document: its sections, entries and keys, each with its location in the document."""

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
    """A location in a document: the name of the file ("" if none), the line (None if unknown) and the path from the top."""

    file: str
    line: int | None
    path: str

    def describe(self) -> str:
        """Describe the location for people: the file and line, or the path if neither is known."""
        line = say("line {line}", line=self.line) if self.line else ""
        return join(filter(None, (self.file, line)), ", ") or self.path

    def member(self, owner: Any, member: str) -> "Location":
        """Return the location of a member of the mapping at this location."""
        line = owner.lines.get(member, self.line) if isinstance(owner, LinedMapping) else self.line
        shown = member[:_LONGEST_NAME]
        return Location(self.file, line, f"{self.path}.{shown}" if self.path else shown)

    def item(self, index: int, item: Any) -> "Location":
        """Return the location of an item of the list at this location."""
        return Location(self.file, item.line if isinstance(item, LinedMapping) else self.line, f"{self.path}[{index}]")


LocatedFault = tuple[Location, str]  # where something is wrong in a document, and what


@dataclass(slots=True, eq=False)
class Entry:
    """A node or a key in a document: what was read from a mapping in it, the `source`."""

    location: Location
    source: Mapping[str, Any]

    def locate(self, member: str) -> Location:
        """Return the location of a member, or of what it is in, such as `permissions`; without that, of the whole mapping."""
        name = member.partition(".")[0]
        return self.location.member(self.source, name) if name in self.source else self.location


@dataclass(slots=True, eq=False)
class NodeEntry(Entry):
    """A node in a document. `values` are the members to set, in the form that the operations accept.

    `groups` are the members that name groups: a permission (`permissions.view`) or a field → "*" or external ids.
    """

    kind: NodeKind
    external_id: str
    name: str
    values: dict[str, Any]
    groups: dict[str, str | tuple[str, ...]]
    children: "list[NodeEntry]" = field(default_factory=list)

    def walk(self) -> "Iterator[NodeEntry]":
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
    location: Location
    under: str | None
    entries: list[NodeEntry]

    def walk(self) -> Iterator[NodeEntry]:
        """Yield all entries, parents before their children, siblings in order."""
        for entry in self.entries:
            yield from entry.walk()


@dataclass(slots=True, eq=False)
class KeyEntry(Entry):
    """An API key in a document: its settings, in the form that the operations on keys accept."""

    name: str
    settings: dict[str, Any]


def locate_faults(refused: Refused, part: Entry | Section) -> list[LocatedFault]:
    """Return the faults that an operation has found in an entry, each at its member; those in a section are all where it begins."""
    found = [(part.locate(fault.field) if isinstance(part, Entry) else part.location, fault.detail) for fault in refused.faults]
    return found or [(part.location, refused.detail)]


@dataclass(slots=True)
class Document:
    """Everything that was sent together: one or more documents with the same name."""

    name: str = ""
    sections: list[Section] = field(default_factory=list)
    keys: list[KeyEntry] = field(default_factory=list)
    empty: list[Location] = field(default_factory=list)

    def walk(self) -> Iterator[NodeEntry]:
        """Yield all entries of all sections."""
        for section in self.sections:
            yield from section.walk()
