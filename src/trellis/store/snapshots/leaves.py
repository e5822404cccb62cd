"""Deleting many nodes without children at once, with snapshots as if they had been deleted one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from trellis.store import nodes, siblings
from trellis.store.counters import add_to_total
from trellis.store.engine import Transaction
from trellis.store.nodes import Node, deleted_ids
from trellis.store.snapshots.rows import NEIGHBOURS, save_many


class DeletedLeaf(NamedTuple):
    """A node as it is just before its own deletion, after those before it in the list, and its nearest siblings at that time."""

    node: Node
    neighbours: Mapping[str, Sequence[int]]


def delete_leaves(tx: Transaction, kind: str, leaves: Sequence[Node]) -> list[Node]:
    """Delete nodes in this order, and return each as it was just before its deletion.

    Each is saved for an event of its own: the next ones, in the same order. A node may have children only if all of them come
    before it in the list.
    """
    by_parent: dict[int | None, list[Node]] = {}
    for node in leaves:
        by_parent.setdefault(node.parent_id, []).append(node)
    found = {leaf.node.id: leaf for parent, there in by_parent.items() for leaf in _foresee(tx, kind, parent, there)}
    gone = [found[node.id] for node in leaves]
    ids = [leaf.node.id for leaf in gone]
    save_many(tx, kind, gone, "deleted")
    slots = {node: slot for batch in nodes.split_into_batches(ids) for node, slot in siblings.find_slots(tx, kind, batch).items()}
    nodes.delete_rows(tx, kind, ids)
    siblings.delete_blocks(tx, kind, ids)
    for parent in by_parent.keys() - set(ids):
        siblings.detach_many(tx, kind, parent, [slots[node.id] for node in by_parent[parent]])
    add_to_total(tx, kind, -len(ids))
    deleted_ids.record_deleted(tx, kind, ids)
    return [leaf.node for leaf in gone]


def _foresee(tx: Transaction, kind: str, parent: int | None, leaves: Sequence[Node]) -> Iterator[DeletedLeaf]:
    """Compute the positions and neighbours that children of one parent will have when each of them is deleted."""
    positions = [node.position for node in leaves]
    before, behind = _link(tx, kind, parent, sorted(positions))
    for node, position in zip(leaves, siblings.positions_on_leaving(positions), strict=True):
        neighbours = {"before": _walk(before, node.id), "behind": _walk(behind, node.id)}
        yield DeletedLeaf(replace(node, position=position), neighbours)
        left, right = before.get(node.id), behind.get(node.id)
        if left is not None:
            behind[left] = right
        if right is not None:
            before[right] = left


def _link(
    tx: Transaction, kind: str, parent: int | None, positions: Sequence[int]
) -> tuple[dict[int, int | None], dict[int, int | None]]:
    """Map the siblings at and around these positions to the one before each, and to the one after it."""
    before: dict[int, int | None] = {}
    behind: dict[int, int | None] = {}
    first = 0
    for last, position in enumerate(positions):
        if last + 1 < len(positions) and positions[last + 1] - position <= 2 * NEIGHBOURS:
            continue  # the siblings around both are read together
        found = siblings.read_range(tx, kind, parent, positions[first] - NEIGHBOURS, position + NEIGHBOURS, (nodes.COLUMNS[0],))
        there = [row[0] for row in found]
        before |= zip(there, (None, *there), strict=False)
        behind |= zip(there, (*there[1:], None), strict=True)
        first = last + 1
    return before, behind


def _walk(links: Mapping[int, int | None], node: int) -> list[int]:
    """Return the nearest siblings of a node on one side, the nearest first."""
    found: list[int] = []
    next_one = links.get(node)
    while next_one is not None and len(found) < NEIGHBOURS:
        found.append(next_one)
        next_one = links.get(next_one)
    return found
