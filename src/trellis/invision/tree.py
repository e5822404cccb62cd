"""Arranging the nodes of the old community as trees, from lists in which parents may come later, be missing or form a circle."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.core.fields import isolate, parse_whole_number, quote
from trellis.core.kind import NodeKind
from trellis.core.structure import DEEPEST

_ROOT: Final = frozenset((0, -1))
_CLOSED: Final = (
    "It is at the top level and closed to everybody. Find out where it belongs, and correct this in the old community, or here "
    "after the last import, since each import would change it back."
)


@dataclass(slots=True, eq=False)
class OldNode:
    """A node of the old community. If `closed`, nobody may do anything with it here. `left_out` is why it is not written, or ""."""

    kind: NodeKind
    id: int
    name: str
    record: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)
    parent: "OldNode | None" = None
    children: "list[OldNode]" = field(default_factory=list)
    closed: bool = False
    left_out: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the top level down to this node."""
        names = [self.name]
        node = self
        while node.parent is not None:
            node = node.parent
            names.append(node.name)
        return tuple(reversed(names))

    @property
    def is_club(self) -> bool:
        """Whether the node belongs to a club."""
        club = self.record.get("club")
        return bool(club) and club != "0"


def arrange(nodes: Iterable[OldNode]) -> list[OldNode]:
    """Put nodes below their parents, and return those at the top level. Problems are added to the notes of the node."""
    by_id = {node.id: node for node in nodes}
    for node in by_id.values():
        node.parent = _find_parent(node, by_id) if node.kind.tree else None
    for node in _list_circular(by_id.values()):
        node.notes.append(f"Its parents lead back to itself. {_CLOSED}")
        node.parent, node.closed = None, True
    for node in by_id.values():
        if node.parent is not None:
            node.parent.children.append(node)
    top = [node for node in by_id.values() if node.parent is None]
    _flatten(top)
    return top


def walk(nodes: Iterable[OldNode]) -> Iterator[OldNode]:
    """Yield nodes and all nodes below them, parents before their children."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _find_parent(node: OldNode, by_id: Mapping[int, OldNode]) -> OldNode | None:
    parent = node.record.get("parentId")
    number = parse_whole_number(parent)
    if parent is None or parent == "" or number in _ROOT:
        return None
    if number is not None and number in by_id:
        return by_id[number]
    node.notes.append(f"Its parent {quote(parent)} is not among the {node.kind.title.lower()} that were sent. {_CLOSED}")
    node.closed = True
    return None


def _list_circular(nodes: Iterable[OldNode]) -> list[OldNode]:
    """Return the node with the lowest id of each circle of parents."""
    found: list[OldNode] = []
    known: set[OldNode] = set()
    for start in nodes:
        passed: dict[OldNode, None] = {}
        node: OldNode | None = start
        while node is not None and node not in known and node not in passed:
            passed[node] = None
            node = node.parent
        if node is not None and node in passed:
            circle = [*passed][[*passed].index(node) :]
            found.append(min(circle, key=lambda one: one.id))
        known.update(passed)  # |= with the keys of a dictionary would copy the whole set
    return found


def _flatten(top: list[OldNode]) -> None:
    """Move up nodes that are on a deeper level than a document may have."""
    level: dict[OldNode, int] = dict.fromkeys(top, 1)
    left: set[OldNode] = set()
    for node in [*walk(top)]:
        parent = node.parent
        if parent is None:
            continue
        if level[parent] >= DEEPEST and parent.parent is not None:
            node.notes.append(f"It is more than {DEEPEST} levels deep; it is placed next to '{isolate(parent.name)}' instead.")
            left.add(parent)
            node.parent = parent = parent.parent
            parent.children.append(node)
        level[node] = level[parent] + 1
    for parent in left:  # all at once: removing one child after the other from a long list takes long
        parent.children = [child for child in parent.children if child.parent is parent]
