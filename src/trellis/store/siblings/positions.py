"""Reading the order of siblings: a node's position, the number of children, and the children in a range of positions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.column_types import NUMBER
from trellis.store.engine import IdIn, InOrder, NodeIdIn, Row, Statement, Transaction
from trellis.store.tables import nodes, sibling_blocks

_c, _b = nodes.c, sibling_blocks.c
Columns = tuple[sa.ColumnElement[Any], ...]

KIND = _c.kind == bindparam("kind")
# A literal, not a parameter: SQLite uses a partial index only if it can see that the statement implies the condition of the index.
ZERO: sa.ColumnElement[int] = sa.literal_column("0", NUMBER)
IN_BLOCK_0 = _c.block == ZERO
# The same for the children of one parent. `<=`, not `=`, which would let PostgreSQL choose the partial index of all rows in block
# 0.
WITHOUT_BLOCKS = _c.block <= ZERO


def _position() -> sa.ColumnElement[int]:
    """Build the sum of offset and starts on the path to the root. The root's start is 0, so only the levels below it are joined."""
    leaf, second, third = (sibling_blocks.alias() for _ in range(3))
    path = leaf.outerjoin(second, second.c.id == leaf.c.parent_block).outerjoin(third, third.c.id == second.c.parent_block)
    starts = leaf.c.start + sa.func.coalesce(second.c.start, ZERO) + sa.func.coalesce(third.c.start, ZERO)
    found = sa.select(starts).select_from(path).where(leaf.c.id == _c.block)
    start = sa.func.coalesce(found.correlate(nodes).scalar_subquery(), ZERO)  # a missing block is damage, which `repair` repairs
    return _c.block_offset + sa.case((IN_BLOCK_0, ZERO), else_=start)


POSITION = _position()  # the position of a row of `nodes`, as a SQL expression: up to three look-ups by primary key


@cache
def is_child(top: bool) -> sa.ColumnElement[bool]:  # noqa: FBT001  # the two forms of one condition
    """Build the condition that selects the children of `:parent`, or the top level.

    They need two forms: `= NULL` is never true, and IS NOT DISTINCT FROM uses no index.
    """
    return sa.and_(KIND, _c.parent_id.is_(None) if top else _c.parent_id == bindparam("parent"))


def parent_param(parent: int | None) -> dict[str, int]:
    """Return the parameter of `is_child`."""
    return {} if parent is None else {"parent": parent}


def with_position(columns: Columns, position: sa.ColumnElement[int]) -> list[sa.ColumnElement[Any]]:
    """Replace POSITION among columns by an expression that the statement can compute at less cost."""
    return [position.label("position") if column is POSITION else column for column in columns]


# --- how many -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extent:
    """The number of siblings, and the id of their root block; 0 if they have no blocks."""

    count: int
    root: int


@cache
def _extent(top: bool) -> Statement:  # noqa: FBT001
    without_blocks = sa.select(sa.func.count()).where(is_child(top), WITHOUT_BLOCKS)
    root = (_b.kind == bindparam("kind"), _b.parent_id == bindparam("owner", type_=NUMBER), _b.parent_block == ZERO)
    columns = (sa.select(column).where(*root).scalar_subquery() for column in (_b.size, _b.id))
    return Statement(sa.select(without_blocks.scalar_subquery(), *columns))


def extent(tx: Transaction, kind: str, parent: int | None) -> Extent:
    """Return the number of children of a parent, and their root block."""
    without, size, root = tx.fetch(_extent(parent is None), kind=kind, owner=parent or 0, **parent_param(parent))[0]
    return Extent(without + (size or 0), root or 0)


def count_children(tx: Transaction, kind: str, parent: int | None) -> int:
    """Count the children of a parent."""
    return extent(tx, kind, parent).count


_COUNT_BY_PARENT = Statement(
    sa.union_all(
        sa.select(_c.parent_id, sa.func.count()).where(KIND, IdIn(_c.parent_id, "ids"), WITHOUT_BLOCKS).group_by(_c.parent_id),
        sa.select(_b.parent_id, _b.size).where(_b.kind == bindparam("kind"), IdIn(_b.parent_id, "ids"), _b.parent_block == ZERO),
    )
)


def count_children_by_parent(tx: Transaction, kind: str, parents: Iterable[int]) -> dict[int, int]:
    """Count the children of each of these nodes: id → number. Those without children are left out."""
    wanted = sorted(set(parents))
    return {row[0]: int(row[1]) for row in tx.fetch(_COUNT_BY_PARENT, kind=kind, ids=tx.id_list(wanted))} if wanted else {}


_PLACES = Statement(sa.select(_c.id, _c.parent_id, POSITION).where(NodeIdIn(_c.id, "ids")))


def find_places(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, tuple[int | None, int]]:
    """Return the parent and the position of each of these nodes: id → (parent's id, position). Missing ones are left out."""
    return {row[0]: (row[1], row[2]) for row in tx.fetch(_PLACES, kind=kind, ids=tx.id_list(ids))}


# --- which --------------------------------------------------------------------------------------------------------


@cache
def _position_of(top: bool) -> Statement:  # noqa: FBT001
    return Statement(sa.select(POSITION).where(is_child(top), _c.id == bindparam("id")))


def find_position(tx: Transaction, kind: str, parent: int | None, node: int) -> int | None:
    """Return the position of a node among the children of `parent`; None if it is not one of them."""
    rows = tx.fetch(_position_of(parent is None), kind=kind, id=node, **parent_param(parent))
    return rows[0][0] if rows else None


def join_blocks(top: bool, *, bounded: bool) -> tuple[sa.FromClause, sa.ColumnElement[int], sa.ColumnElement[bool]]:  # noqa: FBT001
    """Join the children of one parent to their blocks: what to select from, the position, and the condition that selects them.

    The tree is walked from the root down, which costs less than POSITION for many rows. Without blocks, the walk begins and ends
    with an imaginary block 0. `bounded` limits it to the blocks and rows in positions `:first`…`:last`, both included. The other
    parameters are `:kind`, `:owner` (the parent's id, 0 for the top level) and, unless `top`, `:parent`.
    """
    of_parent = (_b.kind == bindparam("kind"), _b.parent_id == bindparam("owner", type_=NUMBER))
    root = [sa.select(column).where(*of_parent, _b.parent_block == ZERO).scalar_subquery() for column in (_b.id, _b.level)]
    begin = sa.select(
        *(sa.func.coalesce(column, ZERO).label(name) for column, name in zip(root, ("id", "level"), strict=True)),
        sa.cast(ZERO, NUMBER).label("start"),
    )
    down = begin.cte("down", recursive=True)
    start = down.c.start + _b.start
    inside = sa.select(_b.id, _b.level, start).where(_b.parent_block == down.c.id, down.c.level > ZERO)
    first, last = (bindparam(name, type_=NUMBER) for name in ("first", "last"))
    if bounded:
        inside = inside.where(start <= last, start + _b.size > first)
    down = down.union_all(inside)
    position = down.c.start + _c.block_offset
    in_leaf = sa.and_(is_child(top), down.c.level == ZERO, _c.block == down.c.id)
    if bounded:  # written as a range of offsets, for which the index on them can be used
        in_leaf = sa.and_(in_leaf, _c.block_offset.between(first - down.c.start, last - down.c.start))
    return InOrder(down, nodes), position, in_leaf


@cache
def _read_range(top: bool, columns: Columns, descending: bool) -> Statement:  # noqa: FBT001
    source, position, in_leaf = join_blocks(top, bounded=True)
    found = sa.select(*with_position(columns, position)).select_from(source).where(in_leaf)
    return Statement(found.order_by(position.desc() if descending else position))


def read_range(
    tx: Transaction, kind: str, parent: int | None, first: int, last: int, columns: Columns, *, descending: bool = False
) -> list[Row]:
    """Read columns of `nodes`, which may include POSITION, for the children in positions first…last, both included, in order."""
    statement = _read_range(parent is None, columns, descending)
    return tx.fetch(statement, kind=kind, owner=parent or 0, first=first, last=last, **parent_param(parent))


@cache
def _children(top: bool) -> Statement:  # noqa: FBT001
    source, position, in_leaf = join_blocks(top, bounded=False)
    return Statement(sa.select(_c.id).select_from(source).where(in_leaf).order_by(position))


def find_children(tx: Transaction, kind: str, parent: int | None) -> list[int]:
    """Return the ids of the children of a parent, in order."""
    return [row[0] for row in tx.fetch(_children(parent is None), kind=kind, owner=parent or 0, **parent_param(parent))]


_CHILDREN_BY_PARENT = Statement(
    sa.select(_c.parent_id, _c.id).where(KIND, IdIn(_c.parent_id, "ids")).order_by(_c.parent_id, POSITION)
)


def find_children_by_parent(tx: Transaction, kind: str, parents: Sequence[int]) -> dict[int, list[int]]:
    """Return the ids of the children of each of these nodes, in order: id → ids."""
    found: dict[int, list[int]] = {parent: [] for parent in parents}
    for parent, child in tx.fetch(_CHILDREN_BY_PARENT, kind=kind, ids=tx.id_list(parents)) if parents else ():
        found[parent].append(child)
    return found
