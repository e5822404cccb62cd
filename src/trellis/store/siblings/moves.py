"""Siblings that come, go and move: who makes way for them, and the shelves on which many stand (see `shelving`).

Nothing else writes a node's parent, shelf or position. A family that outgrows one shelf is dealt out to several; a full shelf
is cut in two; one that few are left on takes its neighbour's in or goes to it; a family of few stands on shelf 0 again.
"""

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.siblings import btree
from trellis.store.siblings.blocks import Shelves, forget
from trellis.store.siblings.btree import HEIGHT, Shelf, cut, dealt
from trellis.store.siblings.positions import KIND, children, extent, under
from trellis.store.tables import NUMBER, nodes

_c = nodes.c
_ONE_BY_ONE: Final = 8  # to take one in among many costs as much as to deal out so many


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a row stands: its shelf, and its place there."""

    shelf: int
    at: int


_SPOT = Statement(sa.select(_c.shelf, _c.position).where(KIND, _c.id == bindparam("node")))
_PUT = Statement(
    sa.update(nodes)
    .where(KIND, _c.id == bindparam("node"))
    .values(parent_id=bindparam("to"), shelf=bindparam("on"), position=bindparam("at"))
)
_STAMP = Statement(sa.update(nodes).where(under(top=False)).values(updated_at=bindparam("when")))
_REPARENT = Statement(
    sa.update(nodes).where(under(top=False)).values(parent_id=bindparam("to"), position=_c.position + bindparam("by", type_=NUMBER))
)
_LAST: Final = 2**31 - 1  # more than any shelf holds


class Family:
    """The children of a node, or the top level (`parent` is None), in one transaction."""

    def __init__(self, tx: Transaction, kind: str, parent: int | None) -> None:
        self._tx, self._kind, self._parent = tx, kind, parent
        self._shelves = Shelves(tx, kind, parent)

    def enter(self, wanted: int | None) -> tuple[Spot, int]:
        """Make room in a place, or behind the last one (None); give the spot that a row can be put in, and its place."""
        known = extent(self._tx, self._kind, self._parent)
        place = known.count if wanted is None else min(wanted, known.count)
        if not known.top and known.count < btree.CAPACITY:
            self._shelves.shift(0, place, known.count, 1)
            return Spot(0, place), place
        way = self._shelves.down(place, known.top or self.deal_out(known.count))
        if way[-1].size >= btree.CAPACITY:
            way = self._shelves.down(place, self._cut(way, at_end=place == known.count))
        leaf = way[-1]
        spot = Spot(leaf.id, place - sum(shelf.before for shelf in way))
        self._shelves.shift(leaf.id, spot.at, leaf.size, 1)
        self._shelves.grow(way, 1)
        return spot, place

    def leave(self, spot: Spot) -> None:
        """Close the gap in a spot that no row stands in any more."""
        if not spot.shelf:
            self._shelves.shift(0, spot.at + 1, _LAST, -1)
            return
        way = self._shelves.up(spot.shelf)
        self._shelves.shift(spot.shelf, spot.at + 1, way[-1].size, -1)
        self._shelves.grow(way, -1)
        if way[0].size - 1 <= btree.CAPACITY // 2:
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
        if not spot.shelf or (abs(new - old) < btree.CAPACITY and 0 <= at < self._shelves.up(spot.shelf)[-1].size):
            if old < new:
                self._shelves.shift(spot.shelf, spot.at + 1, at + 1, -1)
            else:
                self._shelves.shift(spot.shelf, at, spot.at, 1)
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
        made = dealt(count, self._shelves.next(), btree.CAPACITY)
        self._shelves.deal_out(made[0].id, btree.fill(btree.CAPACITY))
        for shelf in made:
            self._shelves.add(shelf)
        return made[-1].id

    def gather(self) -> None:
        """Put all siblings on shelf 0, numbered 0…n-1."""
        self._shelves.gather()

    # --- cutting and pouring together ---

    def _things(self, shelf: Shelf) -> list[int]:
        """Say how many siblings stand before each thing on a shelf."""
        return list(range(shelf.size)) if not shelf.level else [on_it.before for on_it in self._shelves.on(shelf.id)]

    def _cut(self, way: list[Shelf], *, at_end: bool) -> int:
        """Cut the last shelf of a way in two, and those above it that become too full by that; give the highest one."""
        for shelf in reversed(way):
            things = self._things(shelf)
            if len(things) < btree.CAPACITY + (shelf.level > 0) or shelf.level == HEIGHT:
                break
            stay, new, above = cut(things, at_end=at_end), self._shelves.next(), shelf.above
            if not above:
                above, new = new, new + 1
                self._shelves.hang(shelf.id, above)
                self._shelves.add(Shelf(above, shelf.level + 1, 0, 0, shelf.size))
            self._shelves.add(Shelf(new, shelf.level, above, shelf.before + stay, shelf.size - stay))
            self._shelves.carry(shelf, new, stay, -stay)
            self._shelves.resize(shelf.id, stay)
            if not shelf.above:
                return above
        return way[0].id

    def _tidy(self, way: list[Shelf]) -> None:
        """Pour shelves on which few are left together with a neighbour. `way` is as it was before one left."""
        sizes = [shelf.size - 1 for shelf in way]
        for depth in range(len(way) - 1, 0, -1):
            shelf, size = way[depth], sizes[depth]
            things = len(self._shelves.on(shelf.id)) if shelf.level else size
            if things > btree.CAPACITY // 4:
                return
            if not things:
                self._shelves.drop(shelf.id)
                continue
            beside = self._shelves.on(shelf.above)
            at = next(n for n, one in enumerate(beside) if one.id == shelf.id)
            if len(beside) == 1:
                continue
            left, right = (beside[at - 1], beside[at]) if at else (beside[0], beside[1])
            other = left if at else right
            more = len(self._shelves.on(other.id)) if other.level else other.size
            if things + more > btree.fill(btree.CAPACITY):
                return
            self._shelves.carry(right, left.id, 0, left.size)
            self._shelves.resize(left.id, left.size + right.size)
            self._shelves.drop(right.id)


def spot_of(tx: Transaction, kind: str, node: int) -> Spot:
    """Say where a row stands."""
    return Spot(*tx.rows(_SPOT, kind=kind, node=node)[0])


def move(tx: Transaction, kind: str, node: int, old: int | None, new: int | None, wanted: int | None) -> int:
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
    if coming + there > max(btree.CAPACITY, coming * _ONE_BY_ONE):
        for child in children(tx, kind, parent):
            takers.put(child, takers.enter(None)[0])
        forget(tx, kind, [parent])
        return
    goers.gather()
    takers.gather()
    tx.change(_REPARENT, kind=kind, parent=parent, to=to, by=there)
    if coming + there > btree.CAPACITY:
        takers.deal_out(coming + there)
