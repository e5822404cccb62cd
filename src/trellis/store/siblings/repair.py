"""Checking the order of siblings against the rows, and repairing it, for `trellis check`."""

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.siblings import btree
from trellis.store.siblings.btree import Block, are_consistent
from trellis.store.siblings.positions import IN_BLOCK_0, KIND, POSITION, count_children, is_child, parent_param
from trellis.store.siblings.rows import note_order
from trellis.store.siblings.tree import SiblingTree, Slot, assign_many
from trellis.store.tables import nodes, sibling_blocks

_c, _b = nodes.c, sibling_blocks.c
_OF_KIND = _b.kind == bindparam("kind")


def check(tx: Transaction, kind: str) -> list[tuple[int | None, int]]:
    """Find the parents whose children are not in positions 0…n-1, or whose blocks do not add up: pairs of parent and n.

    n is 0 if a parent has blocks but no children.
    """
    trees = _trees(tx, kind)
    rows_by_leaf: dict[int, dict[int, int]] = {parent: {} for parent in trees}
    wrong: set[int] = set()
    for parent, block, rows, is_dense in _find_leaves(tx, kind):
        if parent in trees and block and is_dense:
            rows_by_leaf[parent][block] = rows
        elif parent in trees or block or not is_dense:
            wrong.add(parent)
    wrong |= {parent for parent, blocks in trees.items() if not are_consistent(blocks, rows_by_leaf[parent])}
    return [(parent or None, _count_rows(tx, kind, parent or None)) for parent in sorted(wrong)]


_BLOCKS = Statement(sa.select(_b.parent_id, _b.id, _b.level, _b.parent_block, _b.start, _b.size).where(_OF_KIND))


def _trees(tx: Transaction, kind: str) -> dict[int, list[Block]]:
    found: dict[int, list[Block]] = {}
    for parent, *block in tx.fetch(_BLOCKS, kind=kind):
        found.setdefault(parent, []).append(Block(*block))
    return found


def _leaves() -> Statement:
    """Count the rows of each leaf, but omit siblings in block 0 that are in order and have no blocks, as nearly all are."""
    parent, rows = sa.func.coalesce(_c.parent_id, 0), sa.func.count()
    low, high, different = sa.func.min(_c.block_offset), sa.func.max(_c.block_offset), sa.func.count(sa.distinct(_c.block_offset))
    is_dense = sa.and_(low == 0, high == rows - 1, different == rows)
    has_blocks = parent.in_(sa.select(_b.parent_id).where(_OF_KIND))
    return Statement(
        sa.select(parent, _c.block, rows, is_dense)
        .where(KIND)
        .group_by(_c.parent_id, _c.block)
        .having(sa.or_(~is_dense, _c.block != 0, has_blocks))
    )


_LEAVES = _leaves()


def _find_leaves(tx: Transaction, kind: str) -> Iterator[tuple[int, int, int, bool]]:
    """Count the rows of each leaf: parent, block, number of rows, and whether their offsets are 0…n-1."""
    for owner, block, count, dense in tx.fetch(_LEAVES, kind=kind):
        yield owner, block, count, bool(dense)


def _count_rows(tx: Transaction, kind: str, parent: int | None) -> int:
    """Count the children by their rows: `count_children` would rely on the blocks."""
    found = sa.select(sa.func.count()).where(is_child(parent is None))
    return int(tx.connection.execute(found, {"kind": kind, **parent_param(parent)}).scalar_one())


def repair(tx: Transaction, kind: str, parent: int | None) -> None:
    """Number the children of a parent 0…n-1 in their present order, by id if positions are equal, and rebuild their blocks."""
    note_order(tx, kind, parent)
    tree = SiblingTree(tx, kind, parent)
    found = sa.select(_c.id, _c.block, _c.block_offset).where(is_child(parent is None)).order_by(POSITION, _c.id)
    rows = tx.connection.execute(found, {"kind": kind, **parent_param(parent)}).all()
    for position, (node, block, offset) in enumerate(rows):
        if (block, offset) != (0, position):
            tree.assign(node, Slot(0, position))
    # By parent, not from the root down: damaged blocks may not be connected to it.
    tx.connection.execute(sa.delete(sibling_blocks).where(_b.kind == kind, _b.parent_id == (parent or 0)))
    if len(rows) > btree.CAPACITY:
        tree.build(len(rows))


def find_free_offset(tx: Transaction, kind: str) -> int:
    """Return an offset in block 0 behind all nodes at the top level, where the order may be damaged."""
    last = sa.select(sa.func.coalesce(sa.func.max(_c.block_offset), -1)).where(is_child(top=True), IN_BLOCK_0)
    behind = int(tx.connection.execute(last, {"kind": kind}).scalar_one()) + 1
    return max(behind, count_children(tx, kind, None))


def move_to_top_level(tx: Transaction, kind: str, node: int, offset: int, at: str) -> None:
    """Move a node to the top level, to an offset from `find_free_offset` on that is still free, and set its `updated_at` to `at`.

    It is in block 0 even if the others have blocks: the caller repairs the top level and the old parent afterwards.
    """
    assign_many(tx, kind, {node: (None, Slot(0, offset))}, at)
