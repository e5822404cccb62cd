"""Pages of nodes: filtered, sorted and counted, without looking at more rows than it takes.

Sorted by id and unfiltered, a page is found by counting gaps. Any other deep page is walked to from an anchor nearby. A
filter leads to its rows where few pass it; where many do, the order is walked along and the others are passed over.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import siblings
from trellis.store.engine import Row, Statement, Transaction, Unled
from trellis.store.lists import by_position, changes, search
from trellis.store.lists.filters import SORT, SortBy, where
from trellis.store.lists.result_counts import FEW, Anchor, Known
from trellis.store.nodes import COLUMNS, Node, deleted_ids, node_of
from trellis.store.tables import counters, nodes

__all__ = ["Query", "SortBy", "page"]

_NEAR: Final = 1000  # rows that are passed over without further ado
_HOP: Final = 500  # rows from one anchor to the next
_FEW: Final = 200  # rows that are sorted without asking whether there is a better way
_BRIEF: Final = 5000  # names that a search looks at one by one; or the twentieth part of all, if that is less
_FAMILIES: Final = frozenset({("parent",), ("top",)})  # filters that leave all children of a node, or the top level
_c = nodes.c

Lead = Literal["either", "filter", "order"]
Start = Literal["first", "anchor", "last"]


@dataclass(frozen=True)
class Query:
    """What a list asks for. `filters` holds ids, search, updatedSince, top, parent, and fields of the kind by name."""

    filters: Mapping[str, Any]
    sort_by: SortBy = "id"
    descending: bool = False
    limit: int = 25
    offset: int = 0


def page(tx: Transaction, kind: str, query: Query) -> tuple[int, list[Node]]:
    """Read a page, and how many nodes there are on all pages."""
    asked = _Asked(tx, kind, query)
    total = asked.total()
    if query.offset >= total:
        return total, []
    return total, [node_of(row, tx) for row in asked.rows(total)]


class _Asked:
    """One question on its way to an answer."""

    def __init__(self, tx: Transaction, kind: str, query: Query) -> None:
        self.tx = tx
        self.query = query
        self.names = tuple(sorted(query.filters))
        self.params = {"kind": kind} | {name: value for name, value in query.filters.items() if name != "top"}
        self.question = (kind, self.names, *(query.filters[name] for name in self.names if name != "ids"))
        self.bounded = "ids" in self.names  # to the ids in a parameter
        if self.bounded:
            self.params["ids"] = tx.ids(query.filters["ids"])

    # --- how many -------------------------------------------------------------------------------------------------

    def total(self) -> int:
        if not self.names:
            return self._of_kind()
        if self.names in _FAMILIES:
            return siblings.count(self.tx, self.params["kind"], self.query.filters.get("parent"))
        if self.bounded:
            return int(self.tx.rows(_counting(self.names), **self.params)[0][0])
        known = self._known()
        if known is None or known.total is None:
            known = self._count()
            self._keep(known)
        if known.found is not None:
            self._bound_to(known.found)
        return known.total or 0

    def _bound_to(self, found: frozenset[int]) -> None:
        """Answer from the ids that are known to pass; only those of the page, if they tell where it is."""
        ids: Collection[int] = found
        if self.query.sort_by == "id":
            ids = sorted(found, reverse=self.query.descending)[self.query.offset : self.query.offset + self.query.limit]
            self.query = replace(self.query, offset=0)
        self.names, self.bounded = ("found",), True
        self.params["found"] = self.tx.ids(list(ids))

    def _of_kind(self) -> int:
        counted = self.tx.rows(_OF_KIND, kind=self.params["kind"])
        return int(counted[0][0]) if counted else 0

    def _count(self) -> Known:
        """Count the rows, and remember which they are if they are few."""
        seen, names, params = changes.reach(self.tx).last, self.names, self.params
        if "search" in names:
            most = min(_BRIEF, max(_FEW, self._of_kind() // 20))
            found = search.candidates(self.tx, params["kind"], params["search"], most)
            if found is not None:
                names, params = (*names, "candidates"), params | {"candidates": self.tx.ids(found)}
        some = self.tx.rows(_finding(names), **params, limit=FEW + 1)
        if len(some) <= FEW:
            return Known(seen, len(some), frozenset(row[0] for row in some))
        return Known(seen, int(self.tx.rows(_counting(names), **params)[0][0]))

    # --- what was known -------------------------------------------------------------------------------------------

    def _known(self) -> Known | None:
        """Give what is known about this question, brought up to date."""
        known: Known | None = self.tx.memory.recall(self.question)
        if known is None:
            return None
        delta = changes.delta(self.tx, self.question[1], self.params, known.seen)
        if delta is None:
            return None
        if delta.last != known.seen:
            known = known.advanced(*delta)
            self._keep(known)
        return known

    def _keep(self, known: Known) -> None:
        self.tx.memory.keep(self.question, known)

    # --- which ----------------------------------------------------------------------------------------------------

    def rows(self, total: int) -> Sequence[Row]:
        query = self.query
        if query.sort_by == "position":
            return self._by_place(total)
        if not self.names and query.sort_by == "id" and query.offset > _NEAR:
            return self._by_rank(total)
        if self.bounded or (not self.names and query.offset <= _NEAR):
            return self._read("filter" if self.names == ("found",) else "either", "first", query.offset)
        if query.offset <= _NEAR:
            return self._read(self._lead(total, query.offset), "first", query.offset)
        if (behind := total - query.offset - query.limit) <= _NEAR:
            return self._from_the_end(total, max(0, behind))
        return self._from_anchor(total)

    def _by_place(self, total: int) -> Sequence[Row]:
        """Read a page by position: of a whole family found at once, of any other choice sorted."""
        query, kind, parent = self.query, self.params["kind"], self.query.filters.get("parent")
        if self.names in _FAMILIES or (not self.names and siblings.count(self.tx, kind, None) == total):
            family = parent if self.names else None
            return by_position.family(self.tx, kind, family, total, query.limit, query.offset, descending=query.descending)
        more = {"family": parent or 0, "end": query.offset + query.limit}
        return self.tx.rows(_placing(self.names, query.descending), **self._params(query.offset, query.limit, None), **more)

    def _by_rank(self, total: int) -> Sequence[Row]:
        """Read a page by id, counting from whichever end the order begins at."""
        query = self.query
        rank = total - 1 - query.offset if query.descending else query.offset
        first = max(0, rank - query.limit + 1) if query.descending else rank
        start, offset = deleted_ids.place(self.tx, self.params["kind"], first)
        rows = self.tx.rows(_FROM_ID, kind=self.params["kind"], start=start, offset=offset, limit=min(query.limit, total - first))
        return rows[rank - first :: -1] if query.descending else rows

    def _lead(self, total: int, far: int) -> Lead:
        """Say what leads to the rows: the filters, or the order where it passes over fewer rows than would be sorted."""
        if not self.names or (self.query.sort_by, self.names) == ("updatedAt", ("updatedSince",)):
            return "either"
        if self.query.sort_by == "id" and len(self.names) == 1 and self.names[0] in search.INDEXED_FIELDS:
            return "either"
        if total <= _FEW:
            return "filter"
        return "order" if total * total > self._of_kind() * (far + self.query.limit) else "filter"

    def _from_the_end(self, total: int, behind: int) -> Sequence[Row]:
        limit = min(self.query.limit, total - self.query.offset)
        return self._read(self._lead(total, behind), "last", behind, limit)[::-1]

    def _from_anchor(self, total: int) -> Sequence[Row]:
        """Walk to a page from the nearest anchor, and leave anchors on the way."""
        query, order = self.query, (self.query.sort_by, self.query.descending)
        known = self._known() or Known(changes.reach(self.tx).last)
        at = known.nearest(order, query.offset)
        lead = self._lead(total, query.offset - (at.rank if at else 0))
        if lead == "filter":  # which sorts all that pass it, wherever the page begins
            return self._read(lead, "first", query.offset)
        hop, passed = max(_HOP, total // 1000), list[Anchor]()
        while (rank := at.rank if at else 0) < query.offset:
            step = min(hop, query.offset - rank)
            found = self.tx.rows(_hopping(self.names, *order, lead, "anchor" if at else "first"), **self._params(step, 1, at))
            at = Anchor(rank + step, *found[0])
            passed.append(at)
        self._keep(known.with_anchors(order, passed, hop // 2))
        return self._read(lead, "anchor", 0, at=at)

    def _read(self, lead: Lead, start: Start, offset: int, limit: int | None = None, at: Anchor | None = None) -> Sequence[Row]:
        query = self.query
        statement = _paging(self.names, query.sort_by, query.descending, lead, start)
        return self.tx.rows(statement, **self._params(offset, limit or query.limit, at))

    def _params(self, offset: int, limit: int, at: Anchor | None) -> dict[str, Any]:
        place = {} if at is None else {"from_key": at.key, "from_id": at.id}
        return self.params | {"offset": offset, "limit": limit} | place


_OF_KIND: Final = Statement(sa.select(counters.c.total).where(counters.c.name == bindparam("kind")))
_FROM_ID: Final = Statement(
    sa.select(*COLUMNS)
    .where(_c.kind == bindparam("kind"), _c.id >= bindparam("start"))
    .order_by(_c.id)
    .limit(bindparam("limit", type_=sa.Integer))
    .offset(bindparam("offset", type_=sa.Integer))
)


@cache
def _counting(names: tuple[str, ...]) -> Statement:
    return Statement(sa.select(sa.func.count()).select_from(nodes).where(where(names)))


@cache
def _finding(names: tuple[str, ...]) -> Statement:
    return Statement(sa.select(_c.id).where(where(names)).limit(bindparam("limit", type_=sa.Integer)))


@cache
def _paging(names: tuple[str, ...], sort_by: SortBy, descending: bool, lead: Lead, start: Start) -> Statement:  # noqa: FBT001
    return _walk(COLUMNS, names, sort_by, descending, lead, start)


@cache
def _hopping(names: tuple[str, ...], sort_by: SortBy, descending: bool, lead: Lead, start: Start) -> Statement:  # noqa: FBT001
    return _walk((_c[SORT[sort_by]].label("key"), _c.id), names, sort_by, descending, lead, start)


@cache
def _placing(names: tuple[str, ...], descending: bool) -> Statement:  # noqa: FBT001
    chosen = where(names)
    if {"parent", "top"}.isdisjoint(names):
        return Statement(by_position.of_all(chosen, bounded=not names, descending=descending))
    found = by_position.some_of_family(chosen, top="top" in names, descending=descending)
    return Statement(found.limit(bindparam("limit", type_=sa.Integer)).offset(bindparam("offset", type_=sa.Integer)))


def _walk(
    columns: Sequence[sa.ColumnElement[Any]],
    names: tuple[str, ...],
    sort_by: SortBy,
    descending: bool,  # noqa: FBT001
    lead: Lead,
    start: Start,
) -> Statement:
    by, order = _c[SORT[sort_by]], list[sa.ColumnElement[Any]]()
    found = sa.select(*columns).where(where(names, aside=lead == "order"))
    if start == "anchor":
        found = found.where(_behind(by, descending=descending))
    down = descending != (start == "last")
    for column, turned in ((by, down), (_c.id, start == "last")) if by is not _c.id else ((by, down),):
        led = Unled(column) if lead == "filter" else column
        order.append(led.desc() if turned else led)
    found = found.order_by(*order).limit(bindparam("limit", type_=sa.Integer))
    return Statement(found.offset(bindparam("offset", type_=sa.Integer)))


def _behind(by: sa.Column[Any], *, descending: bool) -> sa.ColumnElement[bool]:
    """Write the condition that a row stands at an anchor or behind it."""
    key, node = bindparam("from_key", type_=by.type), bindparam("from_id", type_=_c.id.type)
    if by is _c.id:
        return _c.id <= node if descending else _c.id >= node
    if descending:
        return sa.and_(by <= key, sa.or_(by < key, _c.id >= node))
    return sa.tuple_(by, _c.id) >= sa.tuple_(key, node)
