"""Attaching, detaching and moving children: how other packages change the order of siblings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from trellis.store.engine import Transaction
from trellis.store.siblings import btree
from trellis.store.siblings.positions import count_children, count_children_by_parent
from trellis.store.siblings.rows import note_order, note_orders
from trellis.store.siblings.tree import FreeSlots, SiblingTree, Slot, assign_many, find_slot, find_slots, most_rewritten


def attach(tx: Transaction, kind: str, parent: int | None, position: int | None = None) -> tuple[Slot, int]:
    """Make room for a new child at a position, or at the end (None, or a number beyond it).

    Returns the slot to be written to the new row, and its position. The slot holds until the next change of these siblings.
    """
    if position is not None:
        note_order(tx, kind, parent)
    return SiblingTree(tx, kind, parent).attach(position)


def detach(tx: Transaction, kind: str, parent: int | None, slot: Slot) -> None:
    """Close the gap left by a child whose row is deleted. `slot` is its slot after the last change of its siblings."""
    note_order(tx, kind, parent)
    SiblingTree(tx, kind, parent).detach(slot)


def detach_many(tx: Transaction, kind: str, parent: int | None, slots: Iterable[Slot]) -> None:
    """Close the gaps left by children whose rows are deleted. `slots` are their slots after the last change of these siblings."""
    note_order(tx, kind, parent)
    SiblingTree(tx, kind, parent).detach_many(slots)


def reorder(tx: Transaction, kind: str, parent: int | None, node: int, old: int, position: int | None) -> int:
    """Move a child from position `old` to another among its siblings, or to the end (None); return the new position."""
    note_order(tx, kind, parent)
    return SiblingTree(tx, kind, parent).reorder(node, old, position)


def move(tx: Transaction, kind: str, node: int, old_parent: int | None, new_parent: int | None, position: int | None) -> int:
    """Move a node to another parent, to a position among its children or to the end (None); return the new position."""
    note_order(tx, kind, old_parent)
    note_order(tx, kind, new_parent)
    tree = SiblingTree(tx, kind, new_parent)
    target, new = tree.attach(position)
    slot = find_slot(tx, kind, node)
    tree.assign(node, target)
    SiblingTree(tx, kind, old_parent).detach(slot)
    return new


def attach_many(tx: Transaction, kind: str, parent: int | None, position: int | None, count: int) -> Iterator[FreeSlots]:
    """Make room for `count` new children side by side. See `attach`.

    Yields slots for some of the children at a time, with the position of the first. Write them before asking for the next ones.
    """
    if position is not None:
        note_order(tx, kind, parent)
    return SiblingTree(tx, kind, parent).make_room(position, count)


def move_many(
    tx: Transaction,
    kind: str,
    ids: Sequence[int],
    parent: int | None,
    to: int | None,
    at: str,
    positions: Sequence[int] | None = None,
) -> None:
    """Move children of one node to another, and set their `updated_at` to `at`.

    Without `positions` they go to the end, in the order of `ids`. Otherwise each gets its position, as of when all have been moved.
    """
    note_order(tx, kind, parent)
    note_order(tx, kind, to)
    left = find_slots(tx, kind, ids).values()
    _join(tx, kind, to, [(None, ids)] if positions is None else _find_runs(ids, positions), at)
    SiblingTree(tx, kind, parent).detach_many(left)


def can_arrange(siblings: int, moved: int) -> bool:
    """Return whether it is less work to `arrange` so many siblings than to move `moved` of them one by one."""
    return siblings <= btree.CAPACITY * moved  # one move renumbers at most CAPACITY rows


def arrange(
    tx: Transaction, kind: str, now: Mapping[int | None, Sequence[int]], wanted: Mapping[int | None, Sequence[int]]
) -> None:
    """Put the children of some nodes into another order. They may also move from one of these nodes to another.

    `now` and `wanted` list the children of each node before and after. `wanted` may include rows that were just inserted and whose
    slots are still to be written.
    """
    changed = [parent for parent, ids in wanted.items() if ids != now[parent]]
    slots = find_slots(tx, kind, [node for parent in changed for node in now[parent]])
    note_orders(tx, kind, changed)
    places: dict[int, tuple[int | None, Slot]] = {}
    leaving: dict[int | None, list[Slot]] = {}  # by parent that only a few of many children leave
    joining: dict[int | None, list[tuple[int, list[int]]]] = {}  # by parent that only a few join
    for parent in changed:
        own = {node: slots[node] for node in now[parent]}
        left, came = own.keys() - wanted[parent], {node: at for at, node in enumerate(wanted[parent]) if node not in own}
        gaps, runs = {own[node].block for node in left}, list(_find_runs([*came], [*came.values()]))
        is_few = len(own) > most_rewritten(len(left) + len(came), len(gaps) + len(runs)) and came.keys() <= slots.keys()
        stay = is_few and [node for node in own if node not in left] == [node for node in wanted[parent] if node not in came]
        if stay and not came:
            leaving[parent] = [own[node] for node in left]
        elif stay and not left:
            joining[parent] = runs
        else:
            new = SiblingTree(tx, kind, parent).arrange([*own.values()], len(wanted[parent]))
            placed = zip(wanted[parent], new, strict=True)
            places |= {node: (parent, slot) for node, slot in placed if own.get(node) != slot}
    assign_many(tx, kind, places)
    for parent, runs in joining.items():
        _join(tx, kind, parent, runs)
    for parent, gone in leaving.items():
        SiblingTree(tx, kind, parent).detach_many(gone)


def _join(
    tx: Transaction, kind: str, parent: int | None, runs: Iterable[tuple[int | None, Sequence[int]]], at: str | None = None
) -> None:
    """Make nodes children of `parent`: each run of them side by side at a position, or at the end (None)."""
    tree = SiblingTree(tx, kind, parent)
    for position, run in runs:
        coming = iter(run)
        for slots, _ in tree.make_room(position, len(run)):
            assign_many(tx, kind, {next(coming): (parent, slot) for slot in slots}, at)


def _find_runs(ids: Sequence[int], positions: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the runs of nodes that will be side by side, each with the position of its first node, in order."""
    placed = enumerate(sorted(zip(positions, ids, strict=True)))
    for _, run in groupby(placed, lambda one: one[1][0] - one[0]):
        those = [place for _, place in run]
        yield those[0][0], [node for _, node in those]


def build_blocks(tx: Transaction, kind: str, parents: Iterable[int | None]) -> None:
    """Build the blocks of those parents that have many children, which were inserted in bulk in block 0 at offsets 0…n-1."""
    wanted = set(parents)
    counts: list[tuple[int | None, int]] = [(None, count_children(tx, kind, None))] if None in wanted else []
    counts.extend(count_children_by_parent(tx, kind, (parent for parent in wanted if parent is not None)).items())
    for parent, count in counts:
        if count > btree.CAPACITY:
            SiblingTree(tx, kind, parent).build(count)
