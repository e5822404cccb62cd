"""The statements of lists: one for each combination of filters and order, compiled on first use."""

from functools import cache
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import siblings
from trellis.store.engine import Statement, WithoutIndexOrder
from trellis.store.lists.filters import SORT_COLUMNS, SortBy, match
from trellis.store.nodes import COLUMNS
from trellis.store.tables import nodes

_c = nodes.c

# How the rows are found: with an index on the filters, whose matches are then sorted; with an index in the order, skipping all
# rows that do not match; or whichever the engine's planner chooses.
Strategy = Literal["planner", "filter", "order"]
Start = Literal["first", "anchor", "last"]  # where a walk begins: at either end of the order, or at an anchor

_LIMIT, _OFFSET = (bindparam(name, type_=sa.Integer) for name in ("limit", "offset"))

Columns = tuple[sa.ColumnElement[Any], ...]
WHOLE: Final[Columns] = COLUMNS
ONLY_IDS: Final[Columns] = (_c.id,)  # for pages whose rows are read afterwards


@cache
def page_from_id(columns: Columns) -> Statement:
    """Read `:limit` nodes by id, skipping the first `:offset` from the id `:start` on."""
    found = sa.select(*columns).where(_c.kind == bindparam("kind"), _c.id >= bindparam("start"))
    return Statement(found.order_by(_c.id).limit(_LIMIT).offset(_OFFSET))


@cache
def count_matches(names: tuple[str, ...]) -> Statement:
    """Count the nodes that pass the filters."""
    return Statement(sa.select(sa.func.count()).select_from(nodes).where(match(names)))


@cache
def find_matches(names: tuple[str, ...]) -> Statement:
    """Find the ids of `:limit` nodes that pass the filters, in no order."""
    return Statement(sa.select(_c.id).where(match(names)).limit(_LIMIT))


@cache
def keys_of(sort_by: SortBy) -> Statement:
    """Read the sort keys and ids of the nodes in `:ids`, in no order."""
    return Statement(sa.select(_c[SORT_COLUMNS[sort_by]], _c.id).where(match(("ids",))))


@cache
def page(
    columns: Columns,
    names: tuple[str, ...],
    sort_by: SortBy,
    descending: bool,  # noqa: FBT001
    strategy: Strategy,
    start: Start,
) -> Statement:
    """Read `:limit` nodes, skipping the first `:offset` from the start. If the start is "last", they are in reverse order."""
    found = _walk(columns, names, sort_by, strategy, start, descending=descending)
    return Statement(found.limit(_LIMIT).offset(_OFFSET))


@cache
def anchors(names: tuple[str, ...], sort_by: SortBy, descending: bool, strategy: Strategy, start: Start) -> Statement:  # noqa: FBT001
    """Walk past `:last` nodes from the start. Of every `:distance`-th and of the last, read how many precede it, its key and id.

    One statement, since PostgreSQL may sort all nodes to find the next few, as it does where it expects few of a kind.
    """
    walked = _walk((_c[SORT_COLUMNS[sort_by]].label("key"), _c.id), names, sort_by, strategy, start, descending=descending)
    walk = walked.limit(_LIMIT).subquery("walk")
    numbered = sa.select((sa.func.row_number().over() - 1).label("before"), walk).subquery("numbered")  # in the order of the walk
    before, last = numbered.c.before, bindparam("last", type_=sa.Integer)
    wanted = sa.or_(before % bindparam("distance", type_=sa.Integer) == 0, before == last)
    return Statement(sa.select(numbered).where(before > 0, wanted).order_by(before))


def _walk(
    columns: Columns, names: tuple[str, ...], sort_by: SortBy, strategy: Strategy, start: Start, *, descending: bool
) -> sa.Select[Any]:
    """Select the nodes that pass the filters, from the start on, in order."""
    by, order = _c[SORT_COLUMNS[sort_by]], list[sa.ColumnElement[Any]]()
    found = sa.select(*columns).where(match(names, without_index=strategy == "order"))
    if start == "anchor":
        found = found.where(_at_or_behind_anchor(by, descending=descending))
    backwards = descending != (start == "last")
    # Equal keys are sorted by ascending id in both directions, and by descending id only if the start is "last".
    for column, is_turned in ((by, backwards), (_c.id, start == "last")) if by is not _c.id else ((by, backwards),):
        sorted_by = WithoutIndexOrder(column) if strategy == "filter" else column
        order.append(sorted_by.desc() if is_turned else sorted_by)
    return found.order_by(*order)


@cache
def page_by_position(columns: Columns, names: tuple[str, ...], descending: bool) -> Statement:  # noqa: FBT001
    """Read `:limit` nodes by position from `:offset` on."""
    if not names:
        return Statement(siblings.select_all(columns, descending=descending))
    return Statement(siblings.select_nodes(columns, match(names), descending=descending))


def _at_or_behind_anchor(by: sa.Column[Any], *, descending: bool) -> sa.ColumnElement[bool]:
    key, node = bindparam("from_key", type_=by.type), bindparam("from_id", type_=_c.id.type)
    if by is _c.id:
        return _c.id <= node if descending else _c.id >= node
    if descending:  # a row comparison would need both columns in one direction
        return sa.and_(by <= key, sa.or_(by < key, _c.id >= node))
    return sa.tuple_(by, _c.id) >= sa.tuple_(key, node)
