"""Pages of nodes: filtered, sorted and counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import ordered, siblings
from trellis.store.clauses import Among, Holds, Member
from trellis.store.nodes import COLUMNS, Node, node_of
from trellis.store.tables import counters, nodes
from trellis.store.transaction import Statement, Transaction

_c = nodes.c
_KIND = _c.kind == bindparam("kind")

SortBy = Literal["id", "name", "position", "createdAt", "updatedAt"]
_SORT: Mapping[str, sa.Column[Any]] = {
    "id": _c.id,
    "name": _c.name_key,
    "createdAt": _c.created_at,
    "updatedAt": _c.updated_at,
}
_FILTERS: Mapping[str, sa.ColumnElement[bool]] = {
    "ids": Among(_c.id, "ids"),
    "search": Holds(_c.name_key, "search"),
    "updatedSince": _c.updated_at >= bindparam("updatedSince"),
    "top": _c.parent_id.is_(None),
    "parent": _c.parent_id == bindparam("parent"),
}


@dataclass(frozen=True, slots=True)
class Query:
    """What a list asks for. `filters` holds ids, search, updatedSince, top, parent, and fields of the kind by name."""

    filters: Mapping[str, Any]
    sort_by: SortBy = "id"
    descending: bool = False
    limit: int = 25
    offset: int = 0


def _where(names: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.and_(_KIND, *(_FILTERS[name] if name in _FILTERS else Member(_c.fields, name) == bindparam(name) for name in names))


@cache
def _counting(names: tuple[str, ...]) -> Statement:
    if not names:
        return Statement(sa.select(counters.c.total).where(counters.c.name == bindparam("kind")))
    return Statement(sa.select(sa.func.count()).select_from(nodes).where(_where(names)))


@cache
def _paging(names: tuple[str, ...], sort_by: str, descending: bool) -> Statement:  # noqa: FBT001
    if sort_by == "position":
        return _by_place(names, descending=descending)
    by = _SORT[sort_by]
    order = (by, _c.id) if by is not _c.id else (_c.id,)
    if descending:
        order = (by.desc(), *order[1:]) if by is not _c.id else (_c.id.desc(),)
    found = sa.select(*COLUMNS).where(_where(names)).order_by(*order)
    return Statement(found.limit(bindparam("limit", type_=sa.Integer)).offset(bindparam("offset", type_=sa.Integer)))


def _by_place(names: tuple[str, ...], *, descending: bool) -> Statement:
    where = _where(names)
    if not {"parent", "top"}.isdisjoint(names):
        found = ordered.some_of_family(where, top="top" in names, descending=descending)
        return Statement(found.limit(bindparam("limit", type_=sa.Integer)).offset(bindparam("offset", type_=sa.Integer)))
    return Statement(ordered.of_all(where, bounded=not names, descending=descending))


def page(tx: Transaction, kind: str, query: Query) -> tuple[int, list[Node]]:
    """Read a page, and how many nodes there are on all pages."""
    names = tuple(sorted(query.filters))
    params = {"kind": kind} | {name: value for name, value in query.filters.items() if name != "top"}
    if "ids" in params:
        params["ids"] = tx.ids(params["ids"])
    parent = query.filters.get("parent")
    whole_family = names in {("parent",), ("top",)}
    if whole_family:
        total = siblings.count(tx, kind, parent)
    else:
        counted = tx.rows(_counting(names), **params)
        total = int(counted[0][0]) if counted else 0
    if query.offset >= total:
        return total, []
    by_place = query.sort_by == "position"
    if by_place and (whole_family or (not names and siblings.count(tx, kind, None) == total)):
        rows = ordered.family(tx, kind, parent, total, query.limit, query.offset, descending=query.descending)
    else:
        more = {"family": parent or 0, "end": query.offset + query.limit} if by_place else {}
        rows = tx.rows(_paging(names, query.sort_by, query.descending), **params, **more, limit=query.limit, offset=query.offset)
    return total, [node_of(row, tx) for row in rows]
