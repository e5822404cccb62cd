"""Searching the request log: by the most selective filter, a limited number of rows at a time.

A search never reads the whole log. If no index finds the rows, it examines one chunk after another, newest first, until its time
limit, and returns where to continue.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Contains, IdIn, Statement, Transaction, WithoutIndex
from trellis.store.requests.request import Request
from trellis.store.tables import key_quarters, key_uses, requests

TIME_LIMIT: Final = 0.03  # seconds
_CHUNK: Final = 5_000  # rows that one statement examines
_INDEXED: Final = ("key_id", "operation", "address", "status")  # each has an index, by time
_MEMBERS: Final = tuple(requests.c[name] for name in Request._fields)
_c = requests.c

LogPosition = tuple[str, int]  # timestamp and id of a request, from which the search continues with older ones


class LoggedRequest(NamedTuple):
    """A request with its number in the log."""

    id: int
    request: Request


class Search(NamedTuple):
    """The result of a search.

    `next` is where to continue, if there may be more; `complete` is false if the time limit ended the search.
    """

    found: list[LoggedRequest]
    next: LogPosition | None
    complete: bool = True


def search(
    tx: Transaction, filters: Mapping[str, Any], limit: int, before: LogPosition | None = None, time_limit: float = TIME_LIMIT
) -> Search:
    """Search the log, newest first.

    `filters` may contain key_id (0: requests without a valid key), operation, address, status, method, `path` (a part of it),
    `kind` (the first digit of the status), `slower` (microseconds), `since` and `until` (timestamps; the latter not included).
    """
    if "kind" in filters and not {*_INDEXED, "method", "path", "slower"} & set(filters):
        return _search_status_class(tx, filters, limit, before)
    indexed = _choose_index(tx, filters)
    span = _within(filters) + ([_is(indexed, filters[indexed])] if indexed else [])
    others = _other_conditions(filters, indexed)
    deadline = time.perf_counter() + time_limit
    found: list[LoggedRequest] = []
    position = before
    while True:
        chunk = span + _before(position)
        end = _find_end(tx, chunk) if others else None
        rows = tx.connection.execute(
            sa.select(_c.id, *_MEMBERS)
            .where(*chunk, *others, *([_c.at >= end] if end else []))
            .order_by(_c.at.desc(), _c.id.desc())
            .limit(limit + 1 - len(found)),
            {"path": filters.get("path")},
        )
        found += [LoggedRequest(row[0], Request(*row[1:])) for row in rows]
        if len(found) > limit:
            last = found[limit - 1]
            return Search(found[:limit], (last.request.at, last.id))
        if end is None:
            return Search(found, None)
        position = (end, 0)
        if time.perf_counter() > deadline:
            return Search(found, position, complete=False)


def _search_status_class(tx: Transaction, filters: Mapping[str, Any], limit: int, before: LogPosition | None) -> Search:
    """Search only by the first digit of the status: status by status, since these have an index."""
    rest = {name: value for name, value in filters.items() if name != "kind"}
    first, found = filters["kind"] * 100, list[LoggedRequest]()
    for status in _statuses(tx, first, first + 99):
        found += search(tx, rest | {"status": status}, limit + 1, before).found
    found.sort(key=lambda one: (one.request.at, one.id), reverse=True)
    last = found[limit - 1] if len(found) > limit else None
    return Search(found[:limit], (last.request.at, last.id) if last else None)


def _statuses(tx: Transaction, first: int, last: int) -> Iterator[int]:
    """Find the statuses that occur, with one index lookup for each."""
    while True:
        least = sa.select(sa.func.min(_c.status)).where(_c.status >= first, _c.status <= last)
        if (status := tx.connection.execute(least).scalar()) is None:
            return
        yield int(status)
        first = status + 1


def _choose_index(tx: Transaction, filters: Mapping[str, Any]) -> str | None:
    """Choose the indexed filter with the fewest matches, counted up to the size of a chunk."""
    named = [name for name in _INDEXED if name in filters]
    if len(named) < 2:
        return named[0] if named else None

    def rows(name: str) -> int:
        some = sa.select(sa.literal(1)).where(_is(name, filters[name]), *_within(filters)).limit(_CHUNK).subquery()
        return int(tx.connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one())

    return min(named, key=rows)


def _is(name: str, value: Any, *, indexed: bool = True) -> sa.ColumnElement[bool]:
    column = _c[name] if indexed else WithoutIndex(_c[name])
    return column.is_(None) if name == "key_id" and value == 0 else column == value


def _within(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    since, until = filters.get("since"), filters.get("until")
    return ([_c.at >= since] if since else []) + ([_c.at < until] if until else [])


def _before(position: LogPosition | None) -> list[sa.ColumnElement[bool]]:
    if position is None:
        return []
    at, number = position
    return [_c.at <= at, sa.or_(_c.at < at, _c.id < number)]


def _other_conditions(filters: Mapping[str, Any], indexed: str | None) -> list[sa.ColumnElement[bool]]:
    found = [_is(name, filters[name], indexed=False) for name in _INDEXED if name in filters and name != indexed]
    if "method" in filters:
        found.append(_c.method == filters["method"])
    if "path" in filters:
        found.append(Contains(_c.path, "path"))
    if "kind" in filters:
        found.append(WithoutIndex(_c.status).between(filters["kind"] * 100, filters["kind"] * 100 + 99))
    if "slower" in filters:
        found.append(_c.duration >= filters["slower"])
    return found


def _find_end(tx: Transaction, chunk: Sequence[sa.ColumnElement[bool]]) -> str | None:
    """Return the timestamp at which a chunk ends; None if the log ends before that."""
    statement = sa.select(_c.at).where(*chunk).order_by(_c.at.desc()).limit(1).offset(_CHUNK)
    return tx.connection.execute(statement).scalar()


def estimate_count(tx: Transaction) -> int:
    """Estimate the number of requests in the log from the first and the last id."""
    last, first = (sa.select(end(_c.id)).scalar_subquery() for end in (sa.func.max, sa.func.min))
    return int(tx.connection.execute(sa.select(sa.func.coalesce(last - first + 1, 0))).scalar_one())


def find(tx: Transaction, number: int) -> LoggedRequest | None:
    """Read one request."""
    row = tx.connection.execute(sa.select(_c.id, *_MEMBERS).where(_c.id == number)).first()
    return LoggedRequest(row[0], Request(*row[1:])) if row else None


def find_all_by_request_id(tx: Transaction, request_id: str, limit: int) -> list[LoggedRequest]:
    """Find the requests with a request id, the newest first. Its sender may have chosen it, so that there can be several."""
    statement = sa.select(_c.id, *_MEMBERS).where(_c.request_id == request_id).order_by(_c.id.desc()).limit(limit)
    return [LoggedRequest(row[0], Request(*row[1:])) for row in tx.connection.execute(statement)]


def find_by_request_id(tx: Transaction, operation: str, request_id: str, since: str, until: str) -> int | None:
    """Find the successful request to an operation with a request id, within a span of time; return its number."""
    statement = (
        sa.select(_c.id)
        .where(
            _c.operation == operation, _c.at >= since, _c.at <= until, WithoutIndex(_c.request_id) == request_id, _c.status < 400
        )
        .order_by(_c.at)
        .limit(1)
    )
    return tx.connection.execute(statement).scalar()


# --- the usage of keys --------------------------------------------------------------------------------------------

_REFUSED: Final = (401, 403, 429)
_u, _q = key_uses.c, key_quarters.c


class OperationUse(NamedTuple):
    """How often and when last a key used an operation, and how often and when last it was refused (401, 403, 429)."""

    operation: str
    times: int
    last_at: str | None
    refused: int
    refused_at: str | None


_BY_QUARTER: Final = Statement(
    sa.select(_q.key_id, _q.quarter, _q.digit, _q.times).where(IdIn(_q.key_id, "keys"), _q.quarter >= sa.bindparam("since"))
)
Count = tuple[int, str, int, int]


def read_quarters(tx: Transaction, keys: Sequence[int], since: str) -> list[Count]:
    """Read the requests of some keys from a moment on: (key, quarter of an hour, first digit of the status, number)."""
    rows = tx.fetch(_BY_QUARTER, keys=tx.id_list(sorted(keys)), since=since[:16])
    return [(int(key), quarter, int(digit), int(times)) for key, quarter, digit, times in rows]


def count_uses(tx: Transaction, key: int) -> list[OperationUse]:
    """Count a key's uses of each operation that it requested."""
    refused = _u.status.in_(_REFUSED)
    statement = (
        sa.select(
            _u.operation,
            sa.func.sum(sa.case((refused, 0), else_=_u.times)),
            sa.func.max(sa.case((refused, None), else_=_u.last_at)),
            sa.func.sum(sa.case((refused, _u.times), else_=0)),
            sa.func.max(sa.case((refused, _u.last_at), else_=None)),
        )
        .where(_u.key_id == key, _u.operation != "")
        .group_by(_u.operation)
        .order_by(_u.operation)
    )
    return [
        OperationUse(name, int(times), last, int(no), no_at) for name, times, last, no, no_at in tx.connection.execute(statement)
    ]
