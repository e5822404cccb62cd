"""Statements for pages of nodes by position, whoever their parents are."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.column_types import NUMBER
from trellis.store.engine import InOrder, Row
from trellis.store.siblings.positions import IN_BLOCK_0, KIND, POSITION, ZERO, Columns, with_position
from trellis.store.tables import nodes, sibling_blocks

_c, _b = nodes.c, sibling_blocks.c


def select_nodes(columns: Columns, where: sa.ColumnElement[bool], *, descending: bool) -> sa.Select[Row]:
    """Select the nodes that satisfy a condition, by position and then by id, `:limit` of them from `:offset` on.

    All that satisfy the condition are sorted.
    """
    return _select_found(columns, sa.select(_c.id, POSITION.label("position")).where(where), descending=descending)


def select_all(columns: Columns, *, descending: bool) -> sa.Select[Row]:
    """Select the nodes of a kind, by position and then by id, `:limit` of them from `:offset` on.

    Rows without blocks come from an index in this order. Of rows in blocks most are left out: a node in position n comes after at
    least n others, so that only positions below `:end`, which is `:offset` + `:limit`, can be on the page; descending, the same
    from the other end. The rest is sorted each time.
    """
    without_blocks = sa.select(_c.id, _c.block_offset.label("position")).where(KIND, IN_BLOCK_0)
    found: Any = sa.union_all(without_blocks, *(_in_blocks(top, descending=descending) for top in (True, False)))
    return _select_found(columns, found, descending=descending)


def _select_found(columns: Columns, found: Any, *, descending: bool) -> sa.Select[Row]:
    order: sa.ColumnElement[int] = sa.desc("position") if descending else sa.asc("position")
    limit, offset = (bindparam(name, type_=sa.Integer) for name in ("limit", "offset"))
    page = found.order_by(order, "id").limit(limit).offset(offset).subquery("found")
    by = page.c.position.desc() if descending else page.c.position
    rows = sa.select(*with_position(columns, page.c.position)).select_from(InOrder(page, nodes))
    return rows.where(KIND, _c.id == page.c.id).order_by(by, page.c.id)


def _in_blocks(top: bool, *, descending: bool) -> sa.Select[tuple[int, int]]:  # noqa: FBT001  # see `is_child`
    """Select the ids and positions of the nodes in blocks: those at the top level, or those under all parents."""
    start = sa.cast(ZERO, NUMBER).label("start")
    roots = sa.select(_b.id, _b.level, _b.parent_id, start, _b.size.label("total")).where(
        _b.kind == bindparam("kind"), _b.parent_block == ZERO, _b.parent_id == ZERO if top else _b.parent_id > ZERO
    )
    down = roots.cte("down" if top else "down_inside", recursive=True)
    absolute, end = down.c.start + _b.start, bindparam("end", type_=NUMBER)
    inside = sa.select(_b.id, _b.level, _b.parent_id, absolute, down.c.total).where(
        _b.parent_block == down.c.id,
        down.c.level > ZERO,
        absolute + _b.size > down.c.total - end if descending else absolute < end,
    )
    down = down.union_all(inside)
    position = down.c.start + _c.block_offset
    parent = _c.parent_id.is_(None) if top else _c.parent_id == down.c.parent_id
    first, behind = down.c.total - end - down.c.start, end - down.c.start
    is_near = _c.block_offset >= first if descending else _c.block_offset < behind
    in_leaf = sa.and_(KIND, parent, down.c.level == ZERO, _c.block == down.c.id, is_near)
    return sa.select(_c.id, position.label("position")).select_from(InOrder(down, nodes)).where(in_leaf)
