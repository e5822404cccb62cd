"""Siblings that come, go and move: who makes way for them, and the shelves on which many stand (see `shelving`).

Nothing else writes a node's parent, shelf or position. A family that outgrows one shelf is dealt out to several; a full shelf
is cut in two; one that few are left on takes its neighbour's in or goes to it; a family of few stands on shelf 0 again.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import shelving
from trellis.store.clauses import Among
from trellis.store.shelving import HEIGHT, Shelf, cut, dealt
from trellis.store.siblings import FEW, KIND, PLACE, ZERO, children, extent, under, with_parent
from trellis.store.tables import NUMBER, nodes, shelves
from trellis.store.transaction import Statement, Transaction

_c, _s = nodes.c, shelves.c
_COLUMNS = (_s.id, _s.level, _s.above, _s.before, _s.size)
_ONE_BY_ONE: Final = 8  # to take one in among many costs as much as to deal out so many


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a row stands: its shelf, and its place there."""

    shelf: int
    at: int


def _number(name: str) -> sa.BindParameter[int]:
    return bindparam(name, type_=NUMBER)


# --- statements ---------------------------------------------------------------------------------------------------

_SPOT = Statement(sa.select(_c.shelf, _c.position).where(KIND, _c.id == bindparam("node")))
_PUT = Statement(
    sa.update(nodes)
    .where(KIND, _c.id == bindparam("node"))
    .values(parent_id=bindparam("to"), shelf=bindparam("on"), position=bindparam("at"))
)
_NEXT = Statement(sa.select(sa.func.coalesce(sa.func.max(_s.id), ZERO) + 1))
_ADD = Statement(sa.insert(shelves).values({column.name: bindparam(column.name) for column in shelves.columns}))
_DROP = Statement(sa.delete(shelves).where(_s.id == bindparam("id")))
_ON = Statement(sa.select(*_COLUMNS).where(_s.above == bindparam("above")).order_by(_s.before, _s.size))
_RESIZE = Statement(sa.update(shelves).where(_s.id == bindparam("shelf")).values(size=bindparam("new")))
_HANG = Statement(sa.update(shelves).where(_s.id == bindparam("shelf")).values(above=bindparam("to")))
_CARRY_SHELVES = Statement(
    sa.update(shelves)
    .where(_s.above == _number("shelf"), _s.before >= _number("first"))
    .values(above=_number("to"), before=_s.before + _number("by"))
)


def _down() -> Statement:
    """Find the shelves from the whole one, `:top`, down to the one that a comer's place is on; between two it is the first."""
    shelf = shelves.alias()
    whole = sa.select(*_COLUMNS, sa.cast(ZERO, NUMBER).label("start")).where(_s.id == _number("top"))
    way = whole.cte("way", recursive=True)
    start, place = way.c.start + shelf.c.before, _number("place")
    on_it = sa.or_(
        sa.and_(start < place, start + shelf.c.size >= place), sa.and_(place == ZERO, start == ZERO, shelf.c.before == ZERO)
    )
    further = sa.select(*(shelf.c[column.name] for column in _COLUMNS), start).where(shelf.c.above == way.c.id, on_it)
    way = way.union_all(further)
    return Statement(sa.select(way).order_by(way.c.level.desc()))


def _up() -> Statement:
    """Find the shelves from the whole one down to a given one. Not UNION ALL: it must end in a damaged database too."""
    shelf = shelves.alias()
    way = sa.select(*_COLUMNS).where(_s.id == bindparam("shelf")).cte("way", recursive=True)
    way = way.union(sa.select(*(shelf.c[column.name] for column in _COLUMNS)).where(shelf.c.id == way.c.above))
    return Statement(sa.select(way).order_by(way.c.level.desc()))


def _grow() -> Statement:
    """Let the shelves on a way, and what stands behind each of them, know that one came or went."""
    beside = [sa.and_(_s.above == _number(f"shelf{n}"), _s.before >= _number(f"before{n + 1}")) for n in range(HEIGHT)]
    on_way = _s.id.in_([_number(f"shelf{n}") for n in range(HEIGHT + 1)])
    return Statement(
        sa.update(shelves)
        .where(sa.or_(_s.id == _number("shelf0"), *beside))
        .values(
            size=_s.size + sa.case((on_way, _number("by")), else_=ZERO),
            before=_s.before + sa.case((on_way, ZERO), else_=_number("by")),
        )
    )


def _drop() -> Statement:
    """Drop all shelves of some families: those of the children of `:parents`."""
    whole = sa.select(_s.id).where(_s.kind == bindparam("kind"), Among(_s.parent_id, "parents"), _s.above == ZERO)
    down = whole.cte("down", recursive=True, nesting=True)
    shelf = shelves.alias()
    down = down.union_all(sa.select(shelf.c.id).where(shelf.c.above == down.c.id))
    return Statement(sa.delete(shelves).where(_s.id.in_(sa.select(down.c.id))))


_DOWN, _UP, _GROW, _DROP_ALL = _down(), _up(), _grow(), _drop()


@cache
def _shift(top: bool) -> Statement:  # noqa: FBT001  # see `under`
    those = sa.and_(under(top), _c.shelf == _number("shelf"), _c.position.between(_number("first"), _number("last")))
    return Statement(sa.update(nodes).where(those).values(position=_c.position + _number("by")))


@cache
def _carry(top: bool) -> Statement:  # noqa: FBT001
    those = sa.and_(under(top), _c.shelf == _number("shelf"), _c.position >= _number("first"))
    return Statement(sa.update(nodes).where(those).values(shelf=_number("to"), position=_c.position + _number("by")))


@cache
def _deal(top: bool) -> Statement:  # noqa: FBT001
    shelf, at = _number("leaf") + _c.position // _number("per"), _c.position % _number("per")
    return Statement(sa.update(nodes).where(under(top), FEW).values(shelf=shelf, position=at))


@cache
def _gather(top: bool) -> Statement:  # noqa: FBT001
    return Statement(sa.update(nodes).where(under(top), _c.shelf > ZERO).values(shelf=ZERO, position=PLACE))


_STAMP = Statement(sa.update(nodes).where(under(top=False)).values(updated_at=bindparam("when")))
_REPARENT = Statement(
    sa.update(nodes).where(under(top=False)).values(parent_id=bindparam("to"), position=_c.position + _number("by"))
)
_LAST: Final = 2**31 - 1  # more than any shelf holds
_NOWHERE: Final = Shelf(-1, 0, -1, 0, 0)


# --- the family ---------------------------------------------------------------------------------------------------


class Family:
    """The children of a node, or the top level (`parent` is None), in one transaction."""

    def __init__(self, tx: Transaction, kind: str, parent: int | None) -> None:
        self._tx, self._kind, self._parent = tx, kind, parent
        self._given: dict[str, Any] = {"kind": kind, **with_parent(parent)}

    def enter(self, wanted: int | None) -> tuple[Spot, int]:
        """Make room in a place, or behind the last one (None); give the spot that a row can be put in, and its place."""
        known = extent(self._tx, self._kind, self._parent)
        place = known.count if wanted is None else min(wanted, known.count)
        if not known.top and known.count < shelving.CAPACITY:
            self._shift(Spot(0, place), known.count, 1)
            return Spot(0, place), place
        way = self._down(place, known.top or self.deal_out(known.count))
        if way[-1].size >= shelving.CAPACITY:
            way = self._down(place, self._cut(way, at_end=place == known.count))
        leaf = way[-1]
        spot = Spot(leaf.id, place - sum(shelf.before for shelf in way))
        self._shift(spot, leaf.size, 1)
        self._grow(way, 1)
        return spot, place

    def leave(self, spot: Spot) -> None:
        """Close the gap in a spot that no row stands in any more."""
        if not spot.shelf:
            self._shift(Spot(0, spot.at + 1), _LAST, -1)
            return
        way = self._up(spot.shelf)
        self._shift(Spot(spot.shelf, spot.at + 1), way[-1].size, -1)
        self._grow(way, -1)
        if way[0].size - 1 <= shelving.CAPACITY // 2:
            self.gather()
        else:
            self._tidy(way)

    def put(self, node: int, spot: Spot) -> None:
        """Put a row in a spot of this family."""
        self._tx.change(_PUT, kind=self._kind, node=node, to=self._parent, on=spot.shelf, at=spot.at)

    def slide(self, node: int, old: int, wanted: int | None) -> int:
        """Move one of the siblings from place `old` to another, or behind the last one (None); give its place.

        On one shelf those between make way; from one to another those on both shelves, and the shelves between.
        """
        last = extent(self._tx, self._kind, self._parent).count - 1
        new = last if wanted is None else min(wanted, last)
        if new == old:
            return new
        spot = spot_of(self._tx, self._kind, node)
        at = spot.at + new - old
        if not spot.shelf or (abs(new - old) < shelving.CAPACITY and 0 <= at < self._up(spot.shelf)[-1].size):
            if old < new:
                self._shift(Spot(spot.shelf, spot.at + 1), at + 1, -1)
            else:
                self._shift(Spot(spot.shelf, at), spot.at, 1)
            self.put(node, Spot(spot.shelf, at))
            return new
        target, _ = self.enter(new + 1 if old < new else new)
        spot = spot_of(self._tx, self._kind, node)  # which may have been moved by those that made way
        self.put(node, target)
        self.leave(spot)
        return new

    # --- all of them at once ---

    def deal_out(self, count: int) -> int:
        """Put siblings that are numbered 0…`count`-1 on shelf 0 on shelves of their own; give the one that holds them all."""
        first = self._next()
        per = shelving.fill(shelving.CAPACITY)
        self._tx.change(_deal(self._parent is None), **self._given, leaf=first, per=per)
        made = dealt(count, first, shelving.CAPACITY)
        for shelf in made:
            self._add(shelf)
        return made[-1].id

    def gather(self) -> None:
        """Put all siblings on shelf 0, numbered 0…n-1."""
        if self._tx.change(_gather(self._parent is None), **self._given):
            self.forget()

    def forget(self) -> None:
        """Drop the shelves. What stood on them must be put elsewhere."""
        forget(self._tx, self._kind, [self._parent or 0])

    # --- shelves ---

    def _next(self) -> int:
        return int(self._tx.rows(_NEXT)[0][0])

    def _add(self, shelf: Shelf) -> None:
        given = {"id": shelf.id, "level": shelf.level, "above": shelf.above, "before": shelf.before, "size": shelf.size}
        self._tx.change(_ADD, kind=self._kind, parent_id=self._parent or 0, **given)

    def _down(self, place: int, top: int) -> list[Shelf]:
        return self._way(_DOWN, top=top, place=place)

    def _up(self, shelf: int) -> list[Shelf]:
        return self._way(_UP, shelf=shelf)

    def _way(self, statement: Statement, **given: Any) -> list[Shelf]:
        return [Shelf(*row[:5]) for row in self._tx.rows(statement, **given)]

    def _shift(self, first: Spot, end: int, by: int) -> None:
        """Move those on a shelf from a spot on, and before place `end`, by a number of places."""
        if first.at < end:
            given = {"shelf": first.shelf, "first": first.at, "last": end - 1, "by": by}
            self._tx.change(_shift(self._parent is None), **self._given, **given)

    def _grow(self, way: list[Shelf], by: int) -> None:
        given: dict[str, int] = {}
        for n in range(HEIGHT + 1):
            shelf = way[n] if n < len(way) else _NOWHERE
            given |= {f"shelf{n}": shelf.id, f"before{n}": shelf.before}
        self._tx.change(_GROW, **given, by=by)

    def _things(self, shelf: Shelf) -> list[int]:
        """Say how many siblings stand before each thing on a shelf."""
        return list(range(shelf.size)) if not shelf.level else [on_it.before for on_it in self._on(shelf.id)]

    def _on(self, above: int) -> list[Shelf]:
        return self._way(_ON, above=above)

    def _carry(self, shelf: Shelf, to: int, first: int, by: int) -> None:
        """Move what stands on a shelf from `first` on to another one."""
        if shelf.level:
            self._tx.change(_CARRY_SHELVES, shelf=shelf.id, to=to, first=first, by=by)
        else:
            self._tx.change(_carry(self._parent is None), **self._given, shelf=shelf.id, to=to, first=first, by=by)

    def _resize(self, shelf: int, size: int) -> None:
        self._tx.change(_RESIZE, shelf=shelf, new=size)

    def _cut(self, way: list[Shelf], *, at_end: bool) -> int:
        """Cut the last shelf of a way in two, and those above it that become too full by that; give the highest one."""
        for shelf in reversed(way):
            things = self._things(shelf)
            if len(things) < shelving.CAPACITY + (shelf.level > 0) or shelf.level == HEIGHT:
                break
            stay, new, above = cut(things, at_end=at_end), self._next(), shelf.above
            if not above:
                above, new = new, new + 1
                self._tx.change(_HANG, shelf=shelf.id, to=above)
                self._add(Shelf(above, shelf.level + 1, 0, 0, shelf.size))
            self._add(Shelf(new, shelf.level, above, shelf.before + stay, shelf.size - stay))
            self._carry(shelf, new, stay, -stay)
            self._resize(shelf.id, stay)
            if not shelf.above:
                return above
        return way[0].id

    def _tidy(self, way: list[Shelf]) -> None:
        """Pour shelves on which few are left together with a neighbour. `way` is as it was before one left."""
        sizes = [shelf.size - 1 for shelf in way]
        for depth in range(len(way) - 1, 0, -1):
            shelf, size = way[depth], sizes[depth]
            things = len(self._on(shelf.id)) if shelf.level else size
            if things > shelving.CAPACITY // 4:
                return
            if not things:
                self._tx.change(_DROP, id=shelf.id)
                continue
            beside = self._on(shelf.above)
            at = next(n for n, one in enumerate(beside) if one.id == shelf.id)
            if len(beside) == 1:
                continue
            left, right = (beside[at - 1], beside[at]) if at else (beside[0], beside[1])
            other = left if at else right
            more = len(self._on(other.id)) if other.level else other.size
            if things + more > shelving.fill(shelving.CAPACITY):
                return
            self._carry(right, left.id, 0, left.size)
            self._resize(left.id, left.size + right.size)
            self._tx.change(_DROP, id=right.id)


def forget(tx: Transaction, kind: str, parents: list[int]) -> None:
    """Drop the shelves of the children of these nodes; 0 is the top level."""
    tx.change(_DROP_ALL, kind=kind, parents=tx.ids(parents))


def spot_of(tx: Transaction, kind: str, node: int) -> Spot:
    """Say where a row stands."""
    return Spot(*tx.rows(_SPOT, kind=kind, node=node)[0])


def move(  # from here to there
    tx: Transaction, kind: str, node: int, old: int | None, new: int | None, wanted: int | None
) -> int:
    """Move a node from the children of `old` to a place among those of `new`, another, or behind the last; give its place."""
    family = Family(tx, kind, new)
    target, place = family.enter(wanted)
    spot = spot_of(tx, kind, node)
    family.put(node, target)
    Family(tx, kind, old).leave(spot)
    return place


def adopt(tx: Transaction, kind: str, parent: int, to: int, when: str) -> None:
    """Move all children of one node behind those of another, in their order; `when` is their time of change."""
    goers, takers = Family(tx, kind, parent), Family(tx, kind, to)
    coming, there = extent(tx, kind, parent).count, extent(tx, kind, to).count
    tx.change(_STAMP, kind=kind, parent=parent, when=when)
    if coming + there > max(shelving.CAPACITY, coming * _ONE_BY_ONE):
        for child in children(tx, kind, parent):
            takers.put(child, takers.enter(None)[0])
        goers.forget()
        return
    goers.gather()
    takers.gather()
    tx.change(_REPARENT, kind=kind, parent=parent, to=to, by=there)
    if coming + there > shelving.CAPACITY:
        takers.deal_out(coming + there)
