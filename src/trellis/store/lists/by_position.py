"""Pages of nodes by their places: of one family, found where they begin, or of all nodes of a kind."""

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Row, Transaction
from trellis.store.nodes import COLUMNS
from trellis.store.siblings import KIND, PLACE, UNSHELVED, ZERO, between, on_shelves
from trellis.store.tables import NUMBER, nodes, shelves

_c, _s = nodes.c, shelves.c
_OTHERS = tuple(column for column in COLUMNS if column is not PLACE)
_AT = COLUMNS.index(PLACE)


def family(tx: Transaction, kind: str, parent: int | None, total: int, limit: int, offset: int, *, descending: bool) -> list[Row]:
    """Read a page of all `total` children of a node, or of the top level, in their order; nothing before it is passed over."""
    first = total - offset - limit if descending else offset
    rows = between(tx, kind, parent, max(0, first), first + limit - 1, _OTHERS, descending=descending)
    return [(*row[:_AT], row[-1], *row[_AT:-1]) for row in rows]


def some_of_family(where: sa.ColumnElement[bool], *, top: bool, descending: bool) -> sa.Select[Row]:
    """Select those children of `:parent`, or of the top level, for whom a condition holds, in their order."""
    rows, place, standing = on_shelves(top, bounded=False)
    columns = (*_OTHERS[:_AT], place.label("place"), *_OTHERS[_AT:])
    found = sa.select(*columns).select_from(rows).where(standing, where)
    return found.order_by(place.desc() if descending else place, _c.id)


def of_all(where: sa.ColumnElement[bool], *, bounded: bool, descending: bool) -> sa.Select[Row]:
    """Select nodes of a kind, wherever they stand, by place and then by id, `:limit` of them from `:offset` on.

    Those on shelves are sorted each time. With `bounded`, when no condition leaves any out, only those are that can be on the
    page: whoever stands in place n of a family comes behind n others, or, from the end, is as far from it as from the page's.
    """
    unshelved = sa.select(_c.id, _c.position.label("place")).where(KIND, UNSHELVED, where)
    parts = [unshelved, *(_shelved(top, bounded=bounded, descending=descending).where(where) for top in (True, False))]
    order: sa.ColumnElement[int] = sa.desc("place") if descending else sa.asc("place")
    limit, offset = (bindparam(name, type_=sa.Integer) for name in ("limit", "offset"))
    found = sa.union_all(*parts).order_by(order, "id").limit(limit).offset(offset).subquery("found")
    columns = (*_OTHERS[:_AT], found.c.place, *_OTHERS[_AT:])
    by = found.c.place.desc() if descending else found.c.place
    return sa.select(*columns).select_from(sa.join(found, nodes, _c.id == found.c.id)).where(KIND).order_by(by, found.c.id)


def _shelved(top: bool, *, bounded: bool, descending: bool) -> sa.Select[tuple[int, int]]:  # noqa: FBT001  # see `under`
    """Select the nodes on shelves, of the top level or of all other families."""
    start = sa.cast(ZERO, NUMBER).label("start")
    whole = sa.select(_s.id, _s.level, _s.parent_id, start, _s.size.label("total")).where(
        _s.kind == bindparam("kind"), _s.above == ZERO, _s.parent_id == ZERO if top else _s.parent_id > ZERO
    )
    down = whole.cte("down" if top else "down_inside", recursive=True)
    before, end = down.c.start + _s.before, bindparam("end", type_=NUMBER)
    further = sa.select(_s.id, _s.level, _s.parent_id, before, down.c.total).where(_s.above == down.c.id, down.c.level > ZERO)
    if bounded:
        further = further.where(before + _s.size > down.c.total - end if descending else before < end)
    down = down.union_all(further)
    place = down.c.start + _c.position
    parent = _c.parent_id.is_(None) if top else _c.parent_id == down.c.parent_id
    standing = sa.and_(KIND, parent, down.c.level == ZERO, _c.shelf == down.c.id)
    if bounded:
        standing = sa.and_(standing, place >= down.c.total - end if descending else place < end)
    return sa.select(_c.id, place.label("place")).select_from(sa.join(down, nodes, sa.true())).where(standing)
