"""The rows of shelves, and the siblings on them as rows: what `families` has changed when siblings come, go and move."""

from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Among, Statement, Transaction
from trellis.store.siblings.btree import HEIGHT, Shelf
from trellis.store.siblings.positions import FEW, PLACE, ZERO, under, with_parent
from trellis.store.tables import NUMBER, nodes, shelves

_c, _s = nodes.c, shelves.c
_COLUMNS = (_s.id, _s.level, _s.above, _s.before, _s.size)


def _number(name: str) -> sa.BindParameter[int]:
    return bindparam(name, type_=NUMBER)


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
    shelf, one = shelves.alias(), shelves.alias()
    whole = sa.select(*_COLUMNS, sa.cast(ZERO, NUMBER).label("start")).where(_s.id == _number("top"))
    way = whole.cte("way", recursive=True)
    start, place = way.c.start + one.c.before, _number("place")
    on_it = sa.or_(sa.and_(start < place, start + one.c.size >= place), sa.and_(place == ZERO, start == ZERO, one.c.before == ZERO))
    # By its number, found one by one: PostgreSQL would read all shelves to join them to what it takes for many.
    found = sa.select(one.c.id).where(one.c.above == way.c.id, on_it).limit(sa.literal_column("1")).correlate(way).scalar_subquery()
    columns = (shelf.c[column.name] for column in _COLUMNS)
    way = way.union_all(sa.select(*columns, way.c.start + shelf.c.before).select_from(way).where(shelf.c.id == found))
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


_NOWHERE: Final = Shelf(-1, 0, -1, 0, 0)


class Shelves:
    """The shelves of the children of a node, or of the top level (`parent` is None). Shelf 0 is the only one of few."""

    def __init__(self, tx: Transaction, kind: str, parent: int | None) -> None:
        self._tx, self._kind, self._parent = tx, kind, parent
        self._given: dict[str, Any] = {"kind": kind, **with_parent(parent)}

    def next(self) -> int:
        """Give the number of a new shelf."""
        return int(self._tx.rows(_NEXT)[0][0])

    def add(self, shelf: Shelf) -> None:
        """Put up a shelf."""
        given = {"id": shelf.id, "level": shelf.level, "above": shelf.above, "before": shelf.before, "size": shelf.size}
        self._tx.change(_ADD, kind=self._kind, parent_id=self._parent or 0, **given)

    def down(self, place: int, top: int) -> list[Shelf]:
        """Find the shelves from `top`, which holds all, down to the one that a comer to a place goes to."""
        return self._way(_DOWN, top=top, place=place)

    def up(self, shelf: int) -> list[Shelf]:
        """Find the shelves from the one that holds all down to a given one."""
        return self._way(_UP, shelf=shelf)

    def _way(self, statement: Statement, **given: Any) -> list[Shelf]:
        return [Shelf(*row[:5]) for row in self._tx.rows(statement, **given)]

    def shift(self, shelf: int, first: int, end: int, by: int) -> None:
        """Move those on a shelf from place `first` on, and before place `end`, by a number of places."""
        if first < end:
            given = {"shelf": shelf, "first": first, "last": end - 1, "by": by}
            self._tx.change(_shift(self._parent is None), **self._given, **given)

    def grow(self, way: list[Shelf], by: int) -> None:
        """Count one more, or less, on the shelves of a way, and before all that stands behind each of them."""
        given: dict[str, int] = {}
        for n in range(HEIGHT + 1):
            shelf = way[n] if n < len(way) else _NOWHERE
            given |= {f"shelf{n}": shelf.id, f"before{n}": shelf.before}
        self._tx.change(_GROW, **given, by=by)

    def on(self, above: int) -> list[Shelf]:
        """Give the shelves on a shelf, in their order."""
        return self._way(_ON, above=above)

    def carry(self, shelf: Shelf, to: int, first: int, by: int) -> None:
        """Move what stands on a shelf from `first` on to another one."""
        if shelf.level:
            self._tx.change(_CARRY_SHELVES, shelf=shelf.id, to=to, first=first, by=by)
        else:
            self._tx.change(_carry(self._parent is None), **self._given, shelf=shelf.id, to=to, first=first, by=by)

    def resize(self, shelf: int, size: int) -> None:
        """Say how many siblings stand on a shelf."""
        self._tx.change(_RESIZE, shelf=shelf, new=size)

    def hang(self, shelf: int, above: int) -> None:
        """Put a shelf on another."""
        self._tx.change(_HANG, shelf=shelf, to=above)

    def drop(self, shelf: int) -> None:
        """Take down a shelf that nothing stands on."""
        self._tx.change(_DROP, id=shelf)

    def deal_out(self, leaf: int, per: int) -> None:
        """Put those on shelf 0, in their order, on shelves `leaf`, `leaf` + 1 and so on, `per` to each."""
        self._tx.change(_deal(self._parent is None), **self._given, leaf=leaf, per=per)

    def gather(self) -> None:
        """Put all siblings on shelf 0, in their order, and drop the others."""
        if self._tx.change(_gather(self._parent is None), **self._given):
            forget(self._tx, self._kind, [self._parent or 0])


def forget(tx: Transaction, kind: str, parents: list[int]) -> None:
    """Drop the shelves of the children of these nodes; 0 is the top level. What stood on them must go elsewhere."""
    tx.change(_DROP_ALL, kind=kind, parents=tx.ids(parents))
