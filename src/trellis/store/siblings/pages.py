"""Statements for pages of nodes by position: the children of one parent, or the nodes of a whole kind."""

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.column_types import NUMBER
from trellis.store.engine import InOrder, Rare, Row
from trellis.store.siblings.positions import IN_BLOCK_0, KIND, ZERO, Columns, join_blocks, with_position
from trellis.store.tables import nodes, sibling_blocks

_c, _b = nodes.c, sibling_blocks.c


def select_children(columns: Columns, where: sa.ColumnElement[bool], *, top: bool, descending: bool) -> sa.Select[Row]:
    """Select the children of a parent that satisfy a condition, in order. All children are examined.

    Parameters: those of the condition, `:kind`, `:owner` (the parent's id, 0 for the top level) and, unless `top`, `:parent`.
    """
    source, position, in_leaf = join_blocks(top, bounded=False)
    found = sa.select(*with_position(columns, position)).select_from(source).where(in_leaf, where)
    return found.order_by(position.desc() if descending else position, _c.id)


def select_nodes(columns: Columns, where: sa.ColumnElement[bool], *, bounded: bool, descending: bool) -> sa.Select[Row]:
    """Select nodes of a kind under any parent, by position and then by id, `:limit` of them from `:offset` on.

    Rows without blocks come from an index in this order; rows in blocks are sorted each time. `bounded`, which is right only
    if the condition excludes no rows, leaves out most of the rows in blocks: a node in position n comes after at least n others, so
    that only positions below `:end`, which is `:offset` + `:limit`, can be on the page; descending, the same from the other end.
    """
    without_blocks = sa.select(_c.id, _c.block_offset.label("position")).where(KIND, IN_BLOCK_0, where)
    parts = [without_blocks, *(_in_blocks(top, bounded=bounded, descending=descending).where(where) for top in (True, False))]
    order: sa.ColumnElement[int] = sa.desc("position") if descending else sa.asc("position")
    limit, offset = (bindparam(name, type_=sa.Integer) for name in ("limit", "offset"))
    found = sa.union_all(*parts).order_by(order, "id").limit(limit).offset(offset).subquery("found")
    by = found.c.position.desc() if descending else found.c.position
    rows = sa.select(*with_position(columns, found.c.position)).select_from(InOrder(found, nodes))
    return rows.where(KIND, _c.id == found.c.id).order_by(by, found.c.id)


def _in_blocks(top: bool, *, bounded: bool, descending: bool) -> sa.Select[tuple[int, int]]:  # noqa: FBT001  # see `is_child`
    """Select the ids and positions of the nodes in blocks: those at the top level, or those under all parents."""
    start = sa.cast(ZERO, NUMBER).label("start")
    roots = sa.select(_b.id, _b.level, _b.parent_id, start, _b.size.label("total")).where(
        _b.kind == bindparam("kind"), _b.parent_block == ZERO, _b.parent_id == ZERO if top else _b.parent_id > ZERO
    )
    down = roots.cte("down" if top else "down_inside", recursive=True)
    absolute, end = down.c.start + _b.start, bindparam("end", type_=NUMBER)
    inside = sa.select(_b.id, _b.level, _b.parent_id, absolute, down.c.total).where(
        _b.parent_block == down.c.id, down.c.level > ZERO
    )
    if bounded:
        inside = inside.where(absolute + _b.size > down.c.total - end if descending else absolute < end)
    down = down.union_all(inside)
    position = down.c.start + _c.block_offset
    parent = _c.parent_id.is_(None) if top else Rare(_c.parent_id, down.c.parent_id)
    in_leaf = sa.and_(KIND, parent, down.c.level == ZERO, Rare(_c.block, down.c.id))
    if bounded:
        first, behind = down.c.total - end - down.c.start, end - down.c.start
        in_leaf = sa.and_(in_leaf, _c.block_offset >= first if descending else _c.block_offset < behind)
    return sa.select(_c.id, position.label("position")).select_from(InOrder(down, nodes)).where(in_leaf)
