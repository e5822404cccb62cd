"""Attaching, detaching and moving children: how other packages change the order of siblings."""

from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.column_types import NUMBER
from trellis.store.engine import Statement, Transaction
from trellis.store.siblings import btree
from trellis.store.siblings.positions import count_children, count_children_by_parent, find_children, is_child
from trellis.store.siblings.rows import delete_blocks, note_order
from trellis.store.siblings.tree import SiblingTree, Slot, find_slot, find_slots
from trellis.store.tables import nodes

__all__ = [
    "attach",
    "attach_many",
    "build_blocks",
    "detach",
    "detach_many",
    "find_slot",
    "find_slots",
    "move",
    "move_children",
    "reorder",
]

_c = nodes.c
_ROWS_PER_NEW: Final = 16  # siblings that may be written anew for each new one
_ONE_BY_ONE: Final = 8  # attaching one child to a large tree costs about as much as building that tree for so many


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
    """Close the gaps left by children whose rows are deleted. `slots` are theirs after the last change of their siblings."""
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


def attach_many(tx: Transaction, kind: str, parent: int | None, position: int | None, count: int) -> tuple[list[Slot], int] | None:
    """Make room for `count` new children side by side; return their slots, and the position of the first. See `attach`.

    Returns None, and does nothing, if there are so many siblings that it is less work to attach one by one.
    """
    if position is not None:
        note_order(tx, kind, parent)
    return SiblingTree(tx, kind, parent).make_room(position, count, most=max(btree.CAPACITY, count * _ROWS_PER_NEW))


_TOUCH = Statement(sa.update(nodes).where(is_child(top=False)).values(updated_at=bindparam("at")))
_REPARENT = Statement(
    sa.update(nodes)
    .where(is_child(top=False))
    .values(parent_id=bindparam("to"), block_offset=_c.block_offset + bindparam("by", type_=NUMBER))
)


def move_children(tx: Transaction, kind: str, parent: int, to: int, at: str) -> None:
    """Move all children of one node after those of another, in order, and set their `updated_at` to `at`.

    A few children join a large tree one by one; otherwise both trees are flattened, joined in one statement, and built again.
    """
    note_order(tx, kind, parent)
    note_order(tx, kind, to)
    source, target = SiblingTree(tx, kind, parent), SiblingTree(tx, kind, to)
    moving, present = count_children(tx, kind, parent), count_children(tx, kind, to)
    tx.execute(_TOUCH, kind=kind, parent=parent, at=at)
    if moving + present > max(btree.CAPACITY, moving * _ONE_BY_ONE):
        for child in find_children(tx, kind, parent):
            target.assign(child, target.attach(None)[0])
        delete_blocks(tx, kind, [parent])
        return
    source.flatten()
    target.flatten()
    tx.execute(_REPARENT, kind=kind, parent=parent, to=to, by=present)
    if moving + present > btree.CAPACITY:
        target.build(moving + present)


def build_blocks(tx: Transaction, kind: str, parents: Iterable[int | None]) -> None:
    """Build the blocks of parents that have many children, inserted in bulk with block 0 and offsets 0…n-1."""
    wanted = set(parents)
    counts: list[tuple[int | None, int]] = [(None, count_children(tx, kind, None))] if None in wanted else []
    counts.extend(count_children_by_parent(tx, kind, (parent for parent in wanted if parent is not None)).items())
    for parent, count in counts:
        if count > btree.CAPACITY:
            SiblingTree(tx, kind, parent).build(count)
