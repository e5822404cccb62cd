"""Which node each entry of a document is: by its external id, as a built-in one, or by its path if nodes are to be adopted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from trellis.core.bounds import Reach
from trellis.core.kind import NodeKind
from trellis.core.operation import Context
from trellis.core.structure.entries import Entry, Place, Section
from trellis.core.structure.reach import find_section_reach
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import nodes
from trellis.store.engine import Transaction
from trellis.store.nodes import Node

_MOST: Final = 20_000  # nodes that a section may have in the community
_DEEPEST: Final = 1_000  # levels


@dataclass(slots=True, eq=False)
class Scope:
    """The nodes that a section is about, as they are: all of a kind, or what is below `root`; and which of them the entries are.

    `children` lists the ids of the children of each parent, in order; the run keeps it up to date. `doomed` are the ids of those
    that are to be deleted, parents before their children.
    """

    section: Section
    root: int | None
    nodes: dict[int, Node]
    children: dict[int | None, list[int]]
    matched: dict[Entry, Node] = field(default_factory=dict)
    adopted: set[Entry] = field(default_factory=set)
    adoptable: int = 0
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


def load_scope(context: Context, section: Section, faults: list[tuple[Place, str]]) -> Scope:
    """Read the nodes that a section is about, as far as the call may reach. Raises Refused (TREE_TOO_LARGE, OUT_OF_BOUNDS)."""
    tx, reach, root = context.tx, find_section_reach(context, section.kind), None
    if reach is not None and section.kind.tree and section.under is None:
        raise reach.refuse("Set under to the external id of a node there.")
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
            return Scope(section, None, {}, defaultdict(list))
    found = nodes.find_tree(tx, section.kind.name, root, _DEEPEST, _MOST + 1)
    if len(found) > _MOST:
        detail = say(
            "There are more than {most:,} {title}. Divide the document into parts, each with its own under.",
            most=_MOST,
            title=section.kind.plural,
        )
        raise Refused("TREE_TOO_LARGE", detail)
    if reach is not None and not section.kind.tree:
        found = [node for node in found if node.id in reach.roots]
    children: dict[int | None, list[int]] = defaultdict(list)
    for node in found:
        children[node.parent_id].append(node.id)
    return Scope(section, root, {node.id: node for node in found}, children, reach=reach)


def match(tx: Transaction, scope: Scope, name: str, faults: list[tuple[Place, str]], *, adopt: bool) -> None:
    """Find the node of each entry. Nodes of another document than `name` are faults, unless they are to be adopted."""
    kind = scope.kind
    by_external_id = {node.external_id: node for node in scope.nodes.values() if node.external_id is not None}
    elsewhere = [entry.external_id for entry in scope.section.walk() if entry.external_id not in by_external_id]
    outside = nodes.find_by_external_ids(tx, kind.name, elsewhere) if scope.root is not None else {}
    told = outside.values() if scope.reach is None else scope.reach.find_inside(tx, outside.values())
    found = nodes.find_by_ids(tx, kind.name, sorted(told))
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
    _match_paths(scope, adopt=adopt)
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


def _match_paths(scope: Scope, *, adopt: bool) -> None:
    """Match the entries that are left to the nodes without an external id that have the same path, in order."""
    taken = {node.id for node in scope.matched.values()}
    free: dict[tuple[str, ...], list[Node]] = defaultdict(list)
    for path, node in _walk_paths(scope):
        if node.external_id is None and node.id not in taken:
            free[path].append(node)
    for path, entry in _walk_entries(scope.section.entries, ()):
        if entry in scope.matched or not (found := free.get(path)):
            continue
        node = found.pop(0)
        if adopt:
            scope.matched[entry] = node
            scope.adopted.add(entry)
        else:
            scope.adoptable += 1


def _walk_paths(scope: Scope) -> Iterator[tuple[tuple[str, ...], Node]]:
    paths: dict[int | None, tuple[str, ...]] = {scope.root: ()}
    for node in scope.nodes.values():  # parents come before their children
        paths[node.id] = (*paths[node.parent_id], node.name)
        yield paths[node.id], node


def _walk_entries(entries: Iterable[Entry], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Entry]]:
    for entry in entries:
        path = (*above, entry.name)
        yield path, entry
        yield from _walk_entries(entry.children, path)
