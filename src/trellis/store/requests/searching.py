"""Searching the request log by shape where possible, a limited number of rows at a time.

A search never reads the whole log at once. Filters on members of a shape select shapes, and an index finds the rows of these by
time. The search reads one window of time after another, newest first, each narrow enough to contain not too many rows. If there are
too many shapes, or no such filter, it examines chunks of all rows. It stops at its time limit, and returns where to continue.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store import log_search
from trellis.store.engine import Contains, IdIn, Transaction, WithoutIndex
from trellis.store.log_search import SearchResult
from trellis.store.requests.request import LONGEST_DURATION, Request, Shape
from trellis.store.requests.shapes import decode
from trellis.store.tables import request_shapes, requests
from trellis.timestamps import shift_timestamp

_CHUNK: Final = 5_000  # rows that one statement examines
_ALL: Final = float("inf")  # width of the first window in seconds: most logs, and most keys, have no more rows than a chunk
_WINDOW: Final = 3600.0  # width of the next window in seconds; later ones are narrower or wider by a factor
_FACTOR: Final = 8
_SHORTEST: Final = 0.001
_FEW: Final = 64  # up to so many shapes, all are searched, whichever have the newest rows
_RARE: Final = 20  # rows are rare if fewer than one in so many belongs to the shapes
_MANY: Final = 4_000  # up to so many shapes, the newest row of each is looked up
_c, _s = requests.c, request_shapes.c
_MEMBERS: Final = (_c.id, _c.at, _c.path, _c.duration, _c.request_id, *(_s[name] for name in Shape._fields))
_JOINED: Final = requests.join(request_shapes, _s.id == _c.shape)
_IN_SHAPES: Final = ("key_id", "operation", "method", "address", "status")  # filters that are members of a shape

LogPosition = tuple[str, int]  # timestamp and id of a request, from which the search continues with older ones


class LoggedRequest(NamedTuple):
    """A request with its number in the log."""

    id: int
    request: Request


def search(
    tx: Transaction, filters: Mapping[str, Any], limit: int, before: LogPosition | None = None
) -> SearchResult[LoggedRequest, LogPosition]:
    """Search the log, newest first.

    `filters` may contain key_id (0: requests with an unknown key), operation, address, status, method, `path` (a part of the path),
    `status_class` (its first digit), `slower` (the least duration in microseconds), `since` and `until` (timestamps; `until`
    is not included).
    """
    span, others = _span_conditions(filters), _other_conditions(filters)
    among = _find_shapes(tx, filters, [*span, *_before(before)], limit + 1, has_others=bool(others))
    if among == []:
        return SearchResult([], None)
    selected = _shape_conditions(filters) if among is None else []
    if selected:  # not a join, since SQLite might begin it with the shapes
        others.append(sa.exists().where(_s.id == WithoutIndex(_c.shape), *selected).correlate(requests))
    rows_of = [] if among is None else [IdIn(_c.shape, "shapes")]
    params = {"path": filters.get("path"), "shapes": None if among is None else tx.id_list(among)}
    is_late = log_search.start_clock()
    found: list[LoggedRequest] = []
    position, seconds = before, _ALL
    while True:
        chunk = span + _before(position)
        if among is None:
            end = _find_end(tx, chunk) if others else None
        else:
            end, seconds = _find_window(tx, [*chunk, *rows_of], params, filters, position, seconds)
        ids = (
            sa.select(_c.id)
            .where(*chunk, *rows_of, *others, *([_c.at >= end] if end else []))
            .order_by(_c.at.desc(), _c.id.desc())
            .limit(limit + 1 - len(found))
        )
        found += _read(tx, [row[0] for row in tx.connection.execute(ids, params)])
        if len(found) > limit:
            last = found[limit - 1]
            return SearchResult(found[:limit], (last.request.at, last.id))
        if end is None:
            return SearchResult(found, None)
        position = (end, 0)
        if is_late():
            return SearchResult(found, position, complete=False)


def _find_shapes(
    tx: Transaction, filters: Mapping[str, Any], span: Sequence[sa.ColumnElement[bool]], count: int, *, has_others: bool
) -> list[int] | None:
    """Return the shapes whose rows to search; None if all rows are to be examined, newest first.

    Of many shapes, only the `count` shapes with the newest rows are returned, where `count` is the number of rows wanted: each of
    them has a row that is newer than any row of the other shapes.
    """
    if not (selected := _shape_conditions(filters)):
        return None
    ids = list(tx.connection.execute(sa.select(_s.id).where(*selected).limit(_MANY + 1)).scalars())
    if len(ids) > _MANY:
        return None
    if len(ids) <= _FEW:
        return ids
    if has_others:
        return None if _is_frequent(tx, selected, span) else ids
    newest = requests.alias()
    first = sa.select(_c.id).where(_c.shape == _s.id, *span).order_by(_c.at.desc(), _c.id.desc()).limit(1)
    with_newest = (
        sa.select(_s.id)
        .select_from(request_shapes.join(newest, newest.c.id == first.correlate(request_shapes).scalar_subquery()))
        .where(*selected)
        .order_by(newest.c.at.desc(), newest.c.id.desc())
        .limit(count)
    )
    return list(tx.connection.execute(with_newest).scalars())


def _is_frequent(tx: Transaction, selected: Sequence[sa.ColumnElement[bool]], span: Sequence[sa.ColumnElement[bool]]) -> bool:
    """Return whether so many of the newest rows have these shapes that examining all rows costs less than examining each shape."""
    newest = sa.select(_c.shape).where(*span).order_by(_c.at.desc()).limit(_CHUNK).subquery()
    return tx.count(newest, sa.exists().where(_s.id == newest.c.shape, *selected)) * _RARE >= _CHUNK


def _shape_conditions(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = [_s[name] == filters[name] for name in _IN_SHAPES if name in filters]
    if "status_class" in filters:
        found.append(_s.status.between(filters["status_class"] * 100, filters["status_class"] * 100 + 99))
    return found


def _span_conditions(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    since, until = filters.get("since"), filters.get("until")
    return ([_c.at >= since] if since else []) + ([_c.at < until] if until else [])


def _before(position: LogPosition | None) -> list[sa.ColumnElement[bool]]:
    if position is None:
        return []
    at, number = position
    return [_c.at <= at, sa.or_(_c.at < at, _c.id < number)]


def _other_conditions(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if "path" in filters:
        found.append(Contains(_c.path, "path"))
    if "slower" in filters:
        found.append(_c.duration >= min(filters["slower"], LONGEST_DURATION))
    return found


def _find_end(tx: Transaction, chunk: Sequence[sa.ColumnElement[bool]]) -> str | None:
    """Return the timestamp at which a chunk ends; None if fewer rows remain than a chunk has."""
    return tx.connection.execute(sa.select(_c.at).where(*chunk).order_by(_c.at.desc()).limit(1).offset(_CHUNK)).scalar()


def _find_window(
    tx: Transaction,
    rows: Sequence[sa.ColumnElement[bool]],
    params: Mapping[str, Any],
    filters: Mapping[str, Any],
    position: LogPosition | None,
    seconds: float,
) -> tuple[str | None, float]:
    """Return the timestamp at which a window of time begins, and the width in seconds to try for the next window.

    The window ends at the position. It contains at most as many of the rows as a chunk, or is one millisecond wide. The timestamp
    is None if the window reaches the oldest row.
    """
    ends = (sa.select(end(_c.at)).scalar_subquery() for end in (sa.func.min, sa.func.max))  # each is one lookup in an index
    oldest, newest = tx.connection.execute(sa.select(*ends)).one()
    if newest is None:
        return None, seconds
    first = max(oldest, filters.get("since", oldest))
    last = min(newest, filters.get("until", newest) if position is None else position[0])
    if last <= first:
        return None, seconds
    while True:
        begin = first if seconds == _ALL else shift_timestamp(last, -timedelta(seconds=seconds))
        some = sa.select(sa.literal(1)).where(*rows, _c.at >= begin).limit(_CHUNK + 1).subquery()
        many = int(tx.connection.execute(sa.select(sa.func.count()).select_from(some), params).scalar_one())
        if many > _CHUNK and seconds > _SHORTEST:
            seconds = _WINDOW if seconds == _ALL else max(_SHORTEST, seconds / _FACTOR)
        else:
            wider = seconds * _FACTOR if many * _FACTOR <= _CHUNK else seconds
            return (None if begin <= first else begin), wider


def _read(tx: Transaction, ids: Sequence[int]) -> list[LoggedRequest]:
    """Read requests by their ids, in the order of `ids`."""
    rows = tx.connection.execute(sa.select(*_MEMBERS).select_from(_JOINED).where(_c.id.in_(ids))) if ids else ()
    read = {row[0]: _decode(row) for row in rows}
    return [read[number] for number in ids]


def _decode(row: Sequence[Any]) -> LoggedRequest:
    number, at, path, duration, request_id, *of = row
    return LoggedRequest(number, Request(at=at, path=path, duration=duration, request_id=request_id, **decode(of)._asdict()))


def estimate_count(tx: Transaction) -> int:
    """Estimate the number of requests in the log from the first and the last id."""
    last, first = (sa.select(end(_c.id)).scalar_subquery() for end in (sa.func.max, sa.func.min))
    return int(tx.connection.execute(sa.select(sa.func.coalesce(last - first + 1, 0))).scalar_one())


def find(tx: Transaction, number: int) -> LoggedRequest | None:
    """Read one request."""
    row = tx.connection.execute(sa.select(*_MEMBERS).select_from(_JOINED).where(_c.id == number)).first()
    return _decode(row) if row else None


def find_all_by_request_id(tx: Transaction, request_id: str, limit: int) -> list[LoggedRequest]:
    """Find at most `limit` requests with a request id, newest first. Callers may choose the id, so it need not be unique."""
    statement = sa.select(*_MEMBERS).select_from(_JOINED).where(_c.request_id == request_id).order_by(_c.id.desc()).limit(limit)
    return [_decode(row) for row in tx.connection.execute(statement)]


def find_by_request_id(
    tx: Transaction, operations: Collection[str], key: int, request_id: str, span: tuple[str, str]
) -> int | None:
    """Return the number of the last successful request of a key with a request id, to some operations, within a span of time."""
    since, until = span
    shapes = sa.select(_s.id).where(_s.key_id == key, _s.operation.in_(sorted(operations)), _s.status < 400)
    statement = (
        sa.select(_c.id)
        .where(_c.shape.in_(shapes), _c.at >= since, _c.at <= until, WithoutIndex(_c.request_id) == request_id)
        .order_by(_c.at.desc(), _c.id.desc())
        .limit(1)
    )
    return tx.connection.execute(statement).scalar()
