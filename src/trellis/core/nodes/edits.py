"""Edits of several nodes, moves and returns of deleted ones: worked out one after the other in memory, and written together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from trellis.core.kind import NodeKind
from trellis.core.nodes.references import refuse_taken
from trellis.core.nodes.tree import DEEPEST, format_path
from trellis.core.operation import Context, OneByOne, check_weight
from trellis.store import nodes, siblings, snapshots
from trellis.store.nodes import Node


class _Edited(NamedTuple):
    """A node as it was just before it changed, and after that; `neighbours` are those that it had, if it has moved."""

    old: Node
    new: Node
    neighbours: dict[str, list[int]] | None


class Edits:
    """Some nodes that are changed one after the other, with the siblings that those leave and join which are moved, too.

    Of those that are `moving`, `find_parent` tells where each is to go, and `returning` are deleted nodes that come back under
    their parents. Raises OneByOne if there are so many siblings that it is less work to move one by one; and for what may have to
    be refused, or depends on more than these siblings.
    """

    def __init__(
        self,
        kind: NodeKind,
        context: Context,
        ids: Sequence[int],
        moving: AbstractSet[int] = frozenset(),
        find_parent: Callable[[Node], int | None] = lambda node: node.parent_id,
        returning: Sequence[Node] = (),
    ) -> None:
        self._kind, self._context = kind, context
        self._edited: list[_Edited] = []
        self._found = nodes.find_by_ids(context.tx, kind.name, ids) if ids else {}
        if len(self._found) < len(ids):  # one is not there, or changes twice
            raise OneByOne
        check_weight((*self._found.values(), *returning))
        targets = {node: find_parent(self._found[node]) for node in ids if node in moving}
        touched = {*targets.values(), *(self._found[node].parent_id for node in targets), *(node.parent_id for node in returning)}
        parents = touched | {node.parent_id for node in self._found.values()}
        above = [parent for parent in parents if parent is not None]
        self._line = nodes.find_ancestors(context.tx, kind.name, above) if above else {}
        joining = {node: to for node, to in targets.items() if to != self._found[node].parent_id}
        joining |= {node.id: node.parent_id for node in returning}
        self._joined = {to for to in joining.values() if to is not None}
        self._check_targets()
        self._check_ways(joining)
        self._orders = self._read_orders(touched, len(targets) + len(returning))
        self._before = {parent: tuple(order) for parent, order in self._orders.items()}
        self._parents = {node: parent for parent, order in self._orders.items() for node in order}

    @property
    def parents(self) -> AbstractSet[int | None]:
        """What nodes leave and join; None is the top level."""
        return self._orders.keys()

    def _check_targets(self) -> None:
        """Raise OneByOne unless all that nodes join is there and may have children."""
        if not self._joined:
            return
        there = nodes.find_by_ids(self._context.tx, self._kind.name, sorted(self._joined))
        if len(there) < len(self._joined) or any(self._kind.leaf_only(node.fields) for node in there.values()):
            raise OneByOne

    def _check_ways(self, joining: Mapping[int, int | None]) -> None:
        """Raise OneByOne if a node goes below itself, or too deep with what is below it by then."""
        parents = self._find_parents() | {node: self._found[node].parent_id for node in joining if node in self._found}
        below: dict[int | None, set[int]] = defaultdict(set)
        for node, parent in parents.items():
            below[parent].add(node)
        levels: dict[int, int] = {}  # how many there are above each that moves, where it comes to be on a deeper one than before
        for node, to in joining.items():
            above = _list_line(parents, to)
            if node in above:
                raise OneByOne
            if node not in parents:  # it returns, and nothing is below it yet
                continue
            if len(above) > len(_list_line(parents, parents[node])):
                for one, level in _walk_down(below, node, len(above)):
                    if level >= DEEPEST:
                        raise OneByOne
                    if one in joining:
                        levels[one] = max(level, levels.get(one, 0))
            below[parents[node]].remove(node)
            below[to].add(node)
            parents[node] = to
        heights = nodes.measure_heights(self._context.tx, self._kind.name, [*levels], [*joining], DEEPEST) if levels else {}
        if any(level + heights[node] >= DEEPEST for node, level in levels.items()):
            raise OneByOne

    def _read_orders(self, parents: Iterable[int | None], moved: int) -> dict[int | None, list[int]]:
        tx, name = self._context.tx, self._kind.name
        below = [parent for parent in parents if parent is not None]
        counts = siblings.count_children_by_parent(tx, name, below)
        top = siblings.count_children(tx, name, None) if None in parents else 0
        if not siblings.can_arrange(top + sum(counts.values()), moved):
            raise OneByOne
        top_level = {None: siblings.find_children(tx, name, None)} if None in parents else {}
        return top_level | siblings.find_children_by_parent(tx, name, below)

    def find_level(self, parent: int | None) -> int:
        """Return how many levels there are down to a node that nodes leave or join; 0 for the top level."""
        return len(_list_line(self._find_parents(), parent))

    def _find_parents(self) -> dict[int, int | None]:
        return {node: parent for node, (parent, _) in self._line.items()}

    def find(self, number: int) -> tuple[Node, str]:
        """Return a node as it is by now, and the path above it."""
        node = self._found[number]
        if number in self._parents:
            parent = self._parents[number]
            node = replace(node, parent_id=parent, position=self._orders[parent].index(number))
        return node, self._find_above(node.parent_id)

    def _find_above(self, parent: int | None) -> str:
        return "" if parent is None else format_path(parent, self._line) + " > "

    def find_position(self, parent: int | None, number: int) -> int | None:
        """Return the position of a node among the children of one that nodes leave or join; None if it is not one of these."""
        return self._orders[parent].index(number) if self._parents.get(number, ...) == parent else None

    def find_neighbours(self, node: Node) -> dict[str, list[int]]:
        """Return what `snapshots.find_neighbours` does."""
        order, at = self._orders[node.parent_id], node.position
        before = order[max(0, at - snapshots.NEIGHBOURS) : at]
        return {"before": before[::-1], "behind": order[at + 1 : at + 1 + snapshots.NEIGHBOURS]}

    def move(self, node: Node, parent: int | None, position: int | None) -> tuple[Node, str]:
        """Move a node to a position, or to the end (None, or a number beyond it); return it, and the path above it."""
        del self._orders[node.parent_id][node.position]
        return self.add(replace(node, parent_id=parent), position)

    def add(self, node: Node, position: int | None) -> tuple[Node, str]:
        """Put a node under its parent that is nowhere, as `move` does."""
        order = self._orders[node.parent_id]
        new = replace(node, position=len(order) if position is None else min(position, len(order)))
        order.insert(new.position, node.id)
        self._parents[node.id] = node.parent_id
        return new, self._find_above(node.parent_id)

    def change(self, old: Node, new: Node, neighbours: dict[str, list[int]] | None) -> None:
        """Keep what has become of a node, for what comes below it, too. `neighbours` are those that it had, if it has moved.

        Raises OneByOne if something else goes below it, and that may depend on the change.
        """
        if old.id in self._joined and self._kind.leaf_only(new.fields) != self._kind.leaf_only(old.fields):
            raise OneByOne
        self._edited.append(_Edited(old, new, neighbours))
        if new.id in self._line:
            self._line[new.id] = new.parent_id, new.name

    def write(self) -> None:
        """Write what has changed, each node for an event of its own, the next ones, in this order. Raises Refused before that.

        An external id that one of these nodes has had until now is refused, too.
        """
        tx, kind = self._context.tx, self._kind
        named = [one.new for one in self._edited if one.new.external_id != one.old.external_id]
        refuse_taken(kind, self._context, [node.external_id or kind.built_in.get(node.id) for node in named], None)
        if not self._edited:
            return
        snapshots.save_many(tx, kind.name, [(one.old, one.neighbours) for one in self._edited], "changed")
        self.write_order()
        nodes.update_many(tx, kind.name, [one.new for one in self._edited])

    def write_order(self) -> None:
        """Write where all are. Those that return must have been inserted."""
        wanted = {parent: tuple(order) for parent, order in self._orders.items()}
        if wanted != self._before:
            siblings.arrange(self._context.tx, self._kind.name, self._before, wanted)


def _list_line(parents: Mapping[int, int | None], node: int | None) -> list[int]:
    """Return a node and those above it, the top last; nothing for the top level."""
    line: list[int] = []
    while node is not None and len(line) <= len(parents):
        line.append(node)
        node = parents[node]
    return line


def _walk_down(below: Mapping[int | None, Iterable[int]], node: int, level: int) -> Iterator[tuple[int, int]]:
    """Yield a node with its level, and what is below it with theirs; in a damaged tree that may have no end."""
    there = [node]
    while there:
        yield from ((one, level) for one in there)
        there, level = [child for one in there for child in below[one]], level + 1
