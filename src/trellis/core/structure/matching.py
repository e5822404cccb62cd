"""Matches the entries of a document to nodes: by external id, as built-in nodes, or by path if nodes are to be adopted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from trellis.core.bounds import Reach
from trellis.core.kind import NodeKind
from trellis.core.operation import Context
from trellis.core.structure.entries import LocatedFault, NodeEntry, Section
from trellis.core.structure.reach import find_section_reach, find_under, tell_no_such
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import nodes, siblings
from trellis.store.engine import Transaction
from trellis.store.nodes import Node, Room

_MOST: Final = 20_000  # existing nodes that a section may cover


@dataclass(slots=True, eq=False)
class MatchedSection:
    """The existing nodes that a section covers: all of a kind, or those below `root`; and the entries that they match.

    `children` lists the ids of the children of each parent, in order. The run keeps it up to date, and all parts of a kind share
    it. `missing` are the nodes that no part of the document contains, parents before their children, each in one scope only;
    `doomed` are the ids of the missing nodes that are to be deleted. `room` limits all that is read of the kind.
    """

    section: Section
    root: int | None
    nodes: dict[int, Node]
    children: dict[int | None, list[int]]
    room: Room
    matched: dict[NodeEntry, Node] = field(default_factory=dict)
    adopted: set[NodeEntry] = field(default_factory=set)
    adoptable: int = 0
    missing: list[Node] = field(default_factory=list)
    doomed: list[int] = field(default_factory=list)
    reach: Reach | None = None

    @property
    def kind(self) -> NodeKind:
        return self.section.kind

    def walk_below(self, node: int) -> Iterator[int]:
        """Yield the ids of all nodes below a node."""
        waiting = list(self.children.get(node, ()))
        while waiting:
            below = waiting.pop()
            yield below
            waiting.extend(self.children.get(below, ()))


def load_scopes(context: Context, sections: Iterable[Section]) -> list[MatchedSection]:
    """Read the nodes that sections cover and the call may reach. Raises Refused (TREE_TOO_LARGE, OUT_OF_BOUNDS)."""
    rooms: dict[str, Room] = defaultdict(lambda: Room(_MOST))  # one for all parts of a kind: they may contain the same nodes
    return [_load_scope(context, section, rooms[section.kind.name]) for section in sections]


def _load_scope(context: Context, section: Section, room: Room) -> MatchedSection:
    tx, reach, root = context.tx, find_section_reach(context, section.kind), None
    if reach is not None and section.kind.tree and section.under is None:
        raise reach.refuse(say("Set under to the external id of a node there."))
    if section.under is not None:
        root = find_under(context, section.kind, section.under, reach)
        if root is None:
            return MatchedSection(section, None, {}, defaultdict(list), room)
    tops = reach.roots if reach is not None and not section.kind.tree else None
    with _refusing(section.kind, room):
        found = nodes.find_tree(tx, section.kind.name, root, nodes.MOST_LEVELS, room, tops)
    return MatchedSection(section, root, {node.id: node for node in found}, _list_children(found), room, reach=reach)


def _list_children(found: Iterable[Node]) -> dict[int | None, list[int]]:
    """Return the ids of the children of each parent, in the order of the nodes."""
    children: dict[int | None, list[int]] = defaultdict(list)
    for node in found:
        children[node.parent_id].append(node.id)
    return children


@contextmanager
def _refusing(kind: NodeKind, room: Room) -> Iterator[None]:
    """Allow reading as many nodes as a section may cover, and refuse more. Raises Refused (TREE_TOO_LARGE)."""
    room.nodes = _MOST
    try:
        yield
    except nodes.TooMuch as much:
        many = say(
            "There are more than {most:,} {title}. Divide the document into parts, each with its own under.",
            most=_MOST,
            title=kind.plural,
        )
        large = say(
            "The {title} that the document is about have more than {mib} MiB of text. Divide it into parts, each with its own "
            "under, and apply them one by one.",
            title=kind.plural,
            mib=much.mib,
        )
        raise Refused("TREE_TOO_LARGE", many if much.mib is None else large) from None


def match_all(tx: Transaction, scopes: Sequence[MatchedSection], name: str, *, adopt: bool) -> list[LocatedFault]:
    """Find the node of each entry, and the nodes that match no entry, and let the parts of a kind share the order of children.

    Returns the faults: sections below nodes that do not exist, and, unless they are to be adopted, nodes that another document than
    `name` manages.
    """
    lost = [(scope.section, scope.section.under) for scope in scopes if scope.root is None]
    faults = [(section.location, tell_no_such(section.kind, under)) for section, under in lost if under is not None]
    known: dict[str, set[int]] = defaultdict(set)  # for all parts of a kind: parts may be below one another
    children: dict[str, dict[int | None, list[int]]] = {}
    for scope in scopes:
        faults += _match(tx, scope, name, known[scope.kind.name], adopt=adopt)
        known[scope.kind.name] |= {node.id for node in scope.matched.values()}
    for scope in scopes:
        there = known[scope.kind.name]
        scope.missing = [node for node in scope.nodes.values() if node.id not in there and node.id not in scope.kind.built_in]
        there |= {node.id for node in scope.missing}
        shared = children.setdefault(scope.kind.name, scope.children)
        shared.update(scope.children)
        scope.children = shared
    return faults


def _match(tx: Transaction, scope: MatchedSection, name: str, taken: AbstractSet[int], *, adopt: bool) -> list[LocatedFault]:
    """Find the node of each entry of a scope; return the faults.

    Nodes that are `taken` by entries of other scopes are not matched by path.
    """
    kind, faults = scope.kind, list[LocatedFault]()
    by_external_id = {node.external_id: node for node in scope.nodes.values() if node.external_id is not None}
    elsewhere = [entry.external_id for entry in scope.section.walk() if entry.external_id not in by_external_id]
    outside = nodes.find_by_external_ids(tx, kind.name, elsewhere) if scope.root is not None else {}
    reached = outside.values() if scope.reach is None else scope.reach.find_inside(tx, outside.values())
    with _refusing(kind, scope.room):
        found = {node.id: node for node in nodes.read_nodes(tx, kind.name, sorted(reached), scope.room)}
    by_external_id |= {external_id: found[number] for external_id, number in outside.items() if number in found}
    for number, external_id in kind.built_in.items():
        if (node := scope.nodes.get(number)) is not None and node.external_id is None:
            by_external_id.setdefault(external_id, node)
    for entry in scope.section.walk():
        if (node := by_external_id.get(entry.external_id)) is not None:
            scope.matched[entry] = node
            if node.id == scope.root:
                faults.append(
                    (entry.location, say("The {singular} cannot be below itself, but under names it.", singular=kind.singular))
                )
    _load_below_others(tx, scope)
    _match_paths(scope, taken, adopt=adopt)
    for entry, node in scope.matched.items():
        if node.managed_by not in {None, name} and not adopt:
            detail = say(
                "{singular} {id} is managed by the document '{managed_by}'. Remove it from that document, or use "
                "adopt to take it over.",
                singular=kind.singular,
                id=node.id,
                managed_by=node.managed_by,
            )
            faults.append((entry.location, detail))
    return faults


def _load_below_others(tx: Transaction, scope: MatchedSection) -> None:
    """Read the nodes below those that entries move into the scope from elsewhere: they move along."""
    kind, room = scope.kind, scope.room
    others = {node.id for node in scope.matched.values() if node.id not in scope.nodes and node.id != scope.root}
    if scope.root is None or not others:
        return
    parents = siblings.count_children_by_parent(tx, kind.name, others)
    with _refusing(kind, room):
        tops = nodes.find_tops(tx, kind.name, parents)
        found = nodes.find_below(tx, kind.name, tops, nodes.MOST_LEVELS, room)
    children = _list_children(found)
    # One of the others may be above the root, which another part of the document can move away. Otherwise, it is refused later.
    found = [node for node in found if node.id != scope.root and node.id not in scope.nodes]
    found.sort(key=lambda node: node.id in others)  # last: what is below them has the paths of their entries
    scope.nodes |= {node.id: node for node in found}
    scope.children |= children


def _match_paths(scope: MatchedSection, taken: AbstractSet[int], *, adopt: bool) -> None:
    """Match the remaining entries, in order, to nodes without an external id that have the same path.

    If nodes are not to be adopted, only count the entries that would match.
    """
    taken = taken | {node.id for node in scope.matched.values()}
    free: dict[tuple[str, ...], list[Node]] = defaultdict(list)
    entries = [*_walk_entries(scope.section.entries, ())]
    others = {scope.matched[entry].id: path for path, entry in entries if entry in scope.matched}
    for path, node in _walk_paths(scope, others):
        if node.external_id is None and node.id not in taken:
            free[path].append(node)
    for path, entry in entries:
        if entry in scope.matched or not (found := free.get(path)):
            continue
        node = found.pop(0)
        if adopt:
            scope.matched[entry] = node
            scope.adopted.add(entry)
        else:
            scope.adoptable += 1


def _walk_paths(scope: MatchedSection, others: Mapping[int, tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the nodes of a scope with their paths.

    `others` maps the ids of matched nodes to the paths of their entries; nodes below those from elsewhere get their future paths.
    """
    paths: dict[int | None, tuple[str, ...]] = {scope.root: ()}
    paths.update((node, path) for node, path in others.items() if node != scope.root)
    for node in scope.nodes.values():  # parents come before their children
        paths[node.id] = (*paths[node.parent_id], node.name)
        yield paths[node.id], node


def _walk_entries(entries: Iterable[NodeEntry], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], NodeEntry]]:
    for entry in entries:
        path = (*above, entry.name)
        yield path, entry
        yield from _walk_entries(entry.children, path)
