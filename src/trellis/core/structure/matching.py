"""Which node each entry of a document is: by its external id, as a built-in one, or by its path if nodes are to be adopted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from trellis.core.bounds import Reach
from trellis.core.kind import NodeKind
from trellis.core.operation import Context
from trellis.core.structure.entries import Entry, Place, Section
from trellis.core.structure.reach import find_section_reach
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import nodes, siblings
from trellis.store.engine import Transaction
from trellis.store.nodes import Node, Room

_MOST: Final = 20_000  # nodes that a section may have in the community


@dataclass(slots=True, eq=False)
class Scope:
    """The nodes that a section is about, as they are: all of a kind, or what is below `root`; and which of them the entries are.

    `children` lists the ids of the children of each parent, in order; the run keeps it up to date, and all parts of a kind have the
    same. `missing` are the nodes that no part of the document has, parents before their children, each in one scope only; `doomed`
    are the ids of those of them that are to be deleted. `room` is for all that is read of the kind.
    """

    section: Section
    root: int | None
    nodes: dict[int, Node]
    children: dict[int | None, list[int]]
    room: Room
    matched: dict[Entry, Node] = field(default_factory=dict)
    adopted: set[Entry] = field(default_factory=set)
    adoptable: int = 0
    missing: list[Node] = field(default_factory=list)
    doomed: list[int] = field(default_factory=list)
    reach: Reach | None = None

    @property
    def kind(self) -> NodeKind:
        return self.section.kind

    def walk_below(self, node: int) -> Iterator[int]:
        """Yield the ids of all nodes below one."""
        waiting = list(self.children.get(node, ()))
        while waiting:
            below = waiting.pop()
            yield below
            waiting.extend(self.children.get(below, ()))


def load_scopes(context: Context, sections: Iterable[Section], faults: list[tuple[Place, str]]) -> list[Scope]:
    """Read the nodes that sections are about, as far as the call may reach. Raises Refused (TREE_TOO_LARGE, OUT_OF_BOUNDS)."""
    rooms: dict[str, Room] = defaultdict(lambda: Room(_MOST))  # parts of a kind may be below one another, and have the same nodes
    return [_load_scope(context, section, rooms[section.kind.name], faults) for section in sections]


def _load_scope(context: Context, section: Section, room: Room, faults: list[tuple[Place, str]]) -> Scope:
    tx, reach, root = context.tx, find_section_reach(context, section.kind), None
    if reach is not None and section.kind.tree and section.under is None:
        raise reach.refuse(say("Set under to the external id of a node there."))
    if section.under is not None:
        root = nodes.find_by_external_ids(tx, section.kind.name, (section.under,)).get(section.under)
        if root is None or (reach is not None and not reach.contains(tx, root)):
            faults.append(
                (
                    section.place,
                    say(
                        "under: there is no {singular} with the external id '{under}'.",
                        singular=section.kind.singular,
                        under=section.under,
                    ),
                )
            )
            return Scope(section, None, {}, defaultdict(list), room)
    found = _read_below(tx, section.kind, root, room)
    if reach is not None and not section.kind.tree:
        found = [node for node in found if node.id in reach.roots]
    children: dict[int | None, list[int]] = defaultdict(list)
    for node in found:
        children[node.parent_id].append(node.id)
    return Scope(section, root, {node.id: node for node in found}, children, room, reach=reach)


def _read_below(tx: Transaction, kind: NodeKind, root: int | None, room: Room) -> list[Node]:
    with _refusing(kind, room):
        return nodes.find_tree(tx, kind.name, root, nodes.MOST_LEVELS, room)


@contextmanager
def _refusing(kind: NodeKind, room: Room) -> Iterator[None]:
    """Let so many nodes be read as a section may have, and refuse what there is no room for. Raises Refused (TREE_TOO_LARGE)."""
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


def match_all(tx: Transaction, scopes: Sequence[Scope], name: str, faults: list[tuple[Place, str]], *, adopt: bool) -> None:
    """Find the node of each entry, and what no entry has; let the parts of a kind share the order of children.

    Nodes of another document than `name` are faults, unless they are to be adopted.
    """
    known: dict[str, set[int]] = defaultdict(set)  # of each kind: parts may be below one another, and have what is below others
    children: dict[str, dict[int | None, list[int]]] = {}
    for scope in scopes:
        _match(tx, scope, name, faults, known[scope.kind.name], adopt=adopt)
        known[scope.kind.name] |= {node.id for node in scope.matched.values()}
    for scope in scopes:
        there = known[scope.kind.name]
        scope.missing = [node for node in scope.nodes.values() if node.id not in there and node.id not in scope.kind.built_in]
        there |= {node.id for node in scope.missing}
        shared = children.setdefault(scope.kind.name, scope.children)
        shared.update(scope.children)
        scope.children = shared


def _match(
    tx: Transaction, scope: Scope, name: str, faults: list[tuple[Place, str]], taken: AbstractSet[int], *, adopt: bool
) -> None:
    """Find the node of each entry of a scope, but for those that are `taken` by entries of others."""
    kind = scope.kind
    by_external_id = {node.external_id: node for node in scope.nodes.values() if node.external_id is not None}
    elsewhere = [entry.external_id for entry in scope.section.walk() if entry.external_id not in by_external_id]
    outside = nodes.find_by_external_ids(tx, kind.name, elsewhere) if scope.root is not None else {}
    told = outside.values() if scope.reach is None else scope.reach.find_inside(tx, outside.values())
    with _refusing(kind, scope.room):
        found = {node.id: node for node in nodes.read_nodes(tx, kind.name, sorted(told), scope.room)}
    by_external_id |= {external_id: found[number] for external_id, number in outside.items() if number in found}
    for number, external_id in kind.built_in.items():
        if (node := scope.nodes.get(number)) is not None and node.external_id is None:
            by_external_id.setdefault(external_id, node)
    for entry in scope.section.walk():
        if (node := by_external_id.get(entry.external_id)) is not None:
            scope.matched[entry] = node
            if node.id == scope.root:
                faults.append(
                    (entry.place, say("The {singular} cannot be below itself, but under names it.", singular=kind.singular))
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
            faults.append((entry.place, detail))


def _load_below_others(tx: Transaction, scope: Scope) -> None:
    """Read what is below the nodes of entries that come from elsewhere: it comes with them."""
    others = [node.id for node in scope.matched.values() if node.id not in scope.nodes and node.id != scope.root]
    for top in siblings.count_children_by_parent(tx, scope.kind.name, others):
        found = _read_below(tx, scope.kind, top, scope.room)
        if any(node.id == scope.root for node in found):  # it cannot be below itself, and will be refused
            continue
        children: dict[int | None, list[int]] = defaultdict(list)
        for node in found:
            children[node.parent_id].append(node.id)
        scope.nodes |= {node.id: node for node in found}
        scope.children |= children


def _match_paths(scope: Scope, taken: AbstractSet[int], *, adopt: bool) -> None:
    """Match the entries that are left to the nodes without an external id that have the same path, in order."""
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


def _walk_paths(scope: Scope, others: Mapping[int, tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the nodes of a scope with their paths, of what comes from elsewhere those that it will have below `others`."""
    paths: dict[int | None, tuple[str, ...]] = {scope.root: ()}
    paths.update((node, path) for node, path in others.items() if node != scope.root)
    for node in scope.nodes.values():  # parents come before their children
        paths[node.id] = (*paths[node.parent_id], node.name)
        yield paths[node.id], node


def _walk_entries(entries: Iterable[Entry], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Entry]]:
    for entry in entries:
        path = (*above, entry.name)
        yield path, entry
        yield from _walk_entries(entry.children, path)
