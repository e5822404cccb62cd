"""Where siblings stand, read: in which place one is, how many there are, and who stands in which places.

Few siblings stand on shelf 0, where the column `position` is their place; many on shelves (see `shelving`), where it counts
from the beginning of the shelf. Whoever wants to know asks here; whoever moves them asks `families`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Among, Row, Statement, Transaction
from trellis.store.tables import NUMBER, nodes, shelves

_c, _s = nodes.c, shelves.c
KIND = _c.kind == bindparam("kind")
ZERO: sa.ColumnElement[int] = sa.literal_column("0", NUMBER)  # no parameter: with one, SQLite would not use the partial index
UNSHELVED = _c.shelf == ZERO
# The same of the children of one parent. Not `=`, with which PostgreSQL may go through the index of all that are unshelved.
FEW = _c.shelf <= ZERO


def _place() -> sa.ColumnElement[int]:
    """Add what stands before a node's shelf, and before those above it. The highest has nothing before it."""
    leaf, second, third = (shelves.alias() for _ in range(3))  # as many as there are levels below the highest
    way = leaf.outerjoin(second, second.c.id == leaf.c.above).outerjoin(third, third.c.id == second.c.above)
    before = leaf.c.before + sa.func.coalesce(second.c.before, ZERO) + sa.func.coalesce(third.c.before, ZERO)
    found = sa.select(before).select_from(way).where(leaf.c.id == _c.shelf)
    start = sa.func.coalesce(found.correlate(nodes).scalar_subquery(), ZERO)  # no shelf: damage, which `check` mends
    return _c.position + sa.case((UNSHELVED, ZERO), else_=start)


PLACE = _place()


@cache
def under(top: bool) -> sa.ColumnElement[bool]:  # noqa: FBT001  # the two shapes of one condition
    """Select the children of `:parent`, or the top level: `= NULL` finds nothing, and `IS NOT DISTINCT` no index."""
    return sa.and_(KIND, _c.parent_id.is_(None) if top else _c.parent_id == bindparam("parent"))


def with_parent(parent: int | None) -> dict[str, int]:
    """Give the parameter of `under`."""
    return {} if parent is None else {"parent": parent}


# --- how many -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extent:
    """How many siblings there are, and the shelf that holds all shelves; 0 if they are few and stand on shelf 0."""

    count: int
    top: int


@cache
def _extent(top: bool) -> Statement:  # noqa: FBT001
    few = sa.select(sa.func.count()).where(under(top), FEW)
    whole = (_s.kind == bindparam("kind"), _s.parent_id == bindparam("family", type_=NUMBER), _s.above == ZERO)
    return Statement(sa.select(few.scalar_subquery(), *(sa.select(c).where(*whole).scalar_subquery() for c in (_s.size, _s.id))))


def extent(tx: Transaction, kind: str, parent: int | None) -> Extent:
    """Say how many children a node has, or the top level, and where they stand."""
    few, size, top = tx.rows(_extent(parent is None), kind=kind, family=parent or 0, **with_parent(parent))[0]
    return Extent(few + (size or 0), top or 0)


def count(tx: Transaction, kind: str, parent: int | None) -> int:
    """Count the children of a node, or of the top level."""
    return extent(tx, kind, parent).count


_COUNTS = Statement(
    sa.union_all(
        sa.select(_c.parent_id, sa.func.count()).where(KIND, Among(_c.parent_id, "ids"), FEW).group_by(_c.parent_id),
        sa.select(_s.parent_id, _s.size).where(_s.kind == bindparam("kind"), Among(_s.parent_id, "ids"), _s.above == ZERO),
    )
)


def counts(tx: Transaction, kind: str, parents: Iterable[int]) -> dict[int, int]:
    """Count the children of each of these nodes; those without any are left out."""
    wanted = sorted(set(parents))
    return {row[0]: int(row[1]) for row in tx.rows(_COUNTS, kind=kind, ids=tx.ids(wanted))} if wanted else {}


# --- who stands where ---------------------------------------------------------------------------------------------


@cache
def _at(top: bool) -> Statement:  # noqa: FBT001
    return Statement(sa.select(PLACE).where(under(top), _c.id == bindparam("id")))


def place_of(tx: Transaction, kind: str, parent: int | None, node: int) -> int | None:
    """Give the place of a node among the children of `parent`; None if it is not one of them."""
    rows = tx.rows(_at(parent is None), kind=kind, id=node, **with_parent(parent))
    return rows[0][0] if rows else None


def on_shelves(top: bool, *, bounded: bool) -> tuple[sa.FromClause, sa.ColumnElement[int], sa.ColumnElement[bool]]:  # noqa: FBT001
    """Give the nodes of a family with their shelves, the place of each, and the condition that selects them.

    With `bounded`, only the shelves with places `:first`…`:last` (both included) are looked through.
    """
    family = (_s.kind == bindparam("kind"), _s.parent_id == bindparam("family", type_=NUMBER))
    whole = [sa.select(column).where(*family, _s.above == ZERO).scalar_subquery() for column in (_s.id, _s.level)]
    nothing = sa.cast(ZERO, NUMBER)
    begin = sa.select(
        *(sa.func.coalesce(column, ZERO).label(name) for column, name in zip(whole, ("id", "level"), strict=True)),
        nothing.label("start"),
    )
    down = begin.cte("down", recursive=True)
    start = down.c.start + _s.before
    further = sa.select(_s.id, _s.level, start).where(_s.above == down.c.id, down.c.level > ZERO)
    if bounded:
        first, last = (bindparam(name, type_=NUMBER) for name in ("first", "last"))
        further = further.where(start <= last, start + _s.size > first)
    down = down.union_all(further)
    place = down.c.start + _c.position
    standing = sa.and_(under(top), down.c.level == ZERO, _c.shelf == down.c.id)
    if bounded:
        on_it = _c.position.between(bindparam("first", type_=NUMBER) - down.c.start, bindparam("last", type_=NUMBER) - down.c.start)
        standing = sa.and_(standing, on_it)
    return sa.join(down, nodes, sa.true()), place, standing


@cache
def _between(top: bool, columns: tuple[sa.ColumnElement[Any], ...], descending: bool) -> Statement:  # noqa: FBT001
    rows, place, standing = on_shelves(top, bounded=True)
    found = sa.select(*columns, place.label("place")).select_from(rows).where(standing)
    return Statement(found.order_by(place.desc() if descending else place))


def between(
    tx: Transaction,
    kind: str,
    parent: int | None,
    first: int,
    last: int,
    columns: tuple[sa.ColumnElement[Any], ...] = (_c.id,),
    *,
    descending: bool = False,
) -> list[Row]:
    """Read columns of the siblings in places first…last, both included, and the place of each behind them, in their order."""
    statement = _between(parent is None, columns, descending)
    return tx.rows(statement, kind=kind, family=parent or 0, first=first, last=last, **with_parent(parent))


@cache
def _children(top: bool) -> Statement:  # noqa: FBT001
    rows, place, standing = on_shelves(top, bounded=False)
    return Statement(sa.select(_c.id).select_from(rows).where(standing).order_by(place))


def children(tx: Transaction, kind: str, parent: int | None) -> list[int]:
    """Give the ids of a node's children, or of the top level, in their order."""
    return [row[0] for row in tx.rows(_children(parent is None), kind=kind, family=parent or 0, **with_parent(parent))]
