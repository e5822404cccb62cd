"""Changes, moves and restores of several nodes: worked out one after the other in memory, and written together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from trellis.core.kind import NodeKind
from trellis.core.nodes.references import refuse_taken
from trellis.core.nodes.tree import DEEPEST, format_path, list_line
from trellis.core.operation import Context, OneByOne, check_weight
from trellis.store import nodes, siblings, snapshots
from trellis.store.nodes import Node


class _Edited(NamedTuple):
    """A node just before and just after a change; if it has moved, `neighbours` are its neighbours before."""

    old: Node
    new: Node
    neighbours: dict[str, list[int]] | None


class Edits:
    """Nodes that are changed one after the other, together with the siblings that moved nodes leave and join.

    `find_parent` returns the new parent of each node that is `moving`; `returning` are deleted nodes to restore under their
    parents. Raises OneByOne if there are so many siblings that moving nodes one by one is less work, and for anything that may have
    to be refused or depends on more than these siblings.
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
        if len(self._found) < len(ids):  # a node does not exist, or changes twice
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
        self._check_moves(joining)
        self._orders = self._read_orders(touched, len(targets) + len(returning))
        self._before = {parent: tuple(order) for parent, order in self._orders.items()}
        self._parents = {node: parent for parent, order in self._orders.items() for node in order}

    @property
    def parents(self) -> AbstractSet[int | None]:
        """The parents that nodes leave and join; None is the top level."""
        return self._orders.keys()

    def _check_targets(self) -> None:
        """Raise OneByOne unless all parents that nodes join exist and may have children."""
        if not self._joined:
            return
        there = nodes.find_by_ids(self._context.tx, self._kind.name, sorted(self._joined))
        if len(there) < len(self._joined) or any(self._kind.leaf_only(node.fields) for node in there.values()):
            raise OneByOne

    def _check_moves(self, joining: Mapping[int, int | None]) -> None:
        """Raise OneByOne if a node would move below itself, or would make a tree too deep with the nodes that are then below it."""
        parents = self._find_parents() | {node: self._found[node].parent_id for node in joining if node in self._found}
        below: dict[int | None, set[int]] = defaultdict(set)
        for node, parent in parents.items():
            below[parent].add(node)
        levels: dict[int, int] = {}  # node whose level becomes deeper → the number of levels above it
        for node, to in joining.items():
            above = list_line(parents, to)
            if node in above:
                raise OneByOne
            if node not in parents:  # it is restored, and nothing is below it yet
                continue
            if len(above) > len(list_line(parents, parents[node])):
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
        """Return the level of a parent that nodes leave or join; 0 for the top level (None)."""
        return len(list_line(self._find_parents(), parent))

    def _find_parents(self) -> dict[int, int | None]:
        return {node: parent for node, (parent, _) in self._line.items()}

    def find(self, number: int) -> tuple[Node, str]:
        """Return a node in its present state, and the path above it."""
        node = self._found[number]
        if number in self._parents:
            parent = self._parents[number]
            node = replace(node, parent_id=parent, position=self._orders[parent].index(number))
        return node, self._find_above(node.parent_id)

    def _find_above(self, parent: int | None) -> str:
        return "" if parent is None else format_path(parent, self._line) + " > "

    def find_position(self, parent: int | None, number: int) -> int | None:
        """Return the position of a node among the children of a parent that nodes leave or join; None if it is not among them."""
        return self._orders[parent].index(number) if self._parents.get(number, ...) == parent else None

    def find_neighbours(self, node: Node) -> dict[str, list[int]]:
        """Return the neighbours of a node, as `snapshots.find_neighbours` does."""
        order, at = self._orders[node.parent_id], node.position
        before = order[max(0, at - snapshots.NEIGHBOURS) : at]
        return {"before": before[::-1], "behind": order[at + 1 : at + 1 + snapshots.NEIGHBOURS]}

    def move(self, node: Node, parent: int | None, position: int | None) -> tuple[Node, str]:
        """Move a node to a position, or to the end (None, or a position beyond it); return the node and the path above it."""
        del self._orders[node.parent_id][node.position]
        return self.add(replace(node, parent_id=parent), position)

    def add(self, node: Node, position: int | None) -> tuple[Node, str]:
        """Put a node that has no place yet under its parent; otherwise like `move`."""
        order = self._orders[node.parent_id]
        new = replace(node, position=len(order) if position is None else min(position, len(order)))
        order.insert(new.position, node.id)
        self._parents[node.id] = node.parent_id
        return new, self._find_above(node.parent_id)

    def change(self, old: Node, new: Node, neighbours: dict[str, list[int]] | None) -> None:
        """Record the change of a node, also for the paths of nodes below it. If it has moved, `neighbours` are its old neighbours.

        Raises OneByOne if other nodes join it as children, and whether they may depends on the change.
        """
        if old.id in self._joined and self._kind.leaf_only(new.fields) != self._kind.leaf_only(old.fields):
            raise OneByOne
        self._edited.append(_Edited(old, new, neighbours))
        if new.id in self._line:
            self._line[new.id] = new.parent_id, new.name

    def write(self) -> None:
        """Write the changes, one event for each node: the next events, in this order. Raises Refused, before anything is written.

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
        """Write the order of all siblings. The rows of restored nodes must have been inserted before."""
        wanted = {parent: tuple(order) for parent, order in self._orders.items()}
        if wanted != self._before:
            siblings.arrange(self._context.tx, self._kind.name, self._before, wanted)


def _walk_down(below: Mapping[int | None, Iterable[int]], node: int, level: int) -> Iterator[tuple[int, int]]:
    """Yield a node and the nodes below it, each with its level. In a damaged tree, this may never end."""
    there = [node]
    while there:
        yield from ((one, level) for one in there)
        there, level = [child for one in there for child in below[one]], level + 1
