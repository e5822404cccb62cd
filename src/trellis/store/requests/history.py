"""The request log as it is searched: by what is rarest first, and a bounded stretch at a time.

A search never reads the whole log. Where an index does not lead to the rows, it looks at one stretch after the other, the
newest first, until its patience ends, and says from where to go on.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Beside, Holds, Transaction
from trellis.store.requests.log import Request
from trellis.store.tables import key_uses, requests

PATIENCE: Final = 0.03  # seconds
_STRETCH: Final = 5_000  # rows
_LEADING: Final = ("key_id", "operation", "address", "status")  # each has an index, by time
_MEMBERS: Final = tuple(requests.c[name] for name in Request._fields)
_c = requests.c

Place = tuple[str, int]  # a moment and an id: everything before it is older


class Logged(NamedTuple):
    """A request with its number in the log."""

    id: int
    request: Request


class Search(NamedTuple):
    """What a search has found. `next` is where to go on, if there may be more; `patient` is false if it ended early."""

    found: list[Logged]
    next: Place | None
    patient: bool = True


def search(
    tx: Transaction, filters: Mapping[str, Any], limit: int, before: Place | None = None, patience: float = PATIENCE
) -> Search:
    """Search the log, the newest first.

    `filters` may hold key_id (0: requests without a good key), operation, address, status, method, `path` (a part of it),
    `kind` (the first digit of the status), `slower` (microseconds), `since` and `until` (moments; the latter not included).
    """
    if "kind" in filters and not {*_LEADING, "method", "path", "slower"} & set(filters):
        return _of_kind(tx, filters, limit, before)
    leading = _leading(tx, filters)
    reach = _reach(filters) + ([_is(leading, filters[leading])] if leading else [])
    others = _others(filters, leading)
    deadline = time.perf_counter() + patience
    found: list[Logged] = []
    place = before
    while True:
        stretch = reach + _before(place)
        end = _end(tx, stretch) if others else None
        rows = tx.connection.execute(
            sa.select(_c.id, *_MEMBERS)
            .where(*stretch, *others, *([_c.at >= end] if end else []))
            .order_by(_c.at.desc(), _c.id.desc())
            .limit(limit + 1 - len(found)),
            {"path": filters.get("path")},
        )
        found += [Logged(row[0], Request(*row[1:])) for row in rows]
        if len(found) > limit:
            last = found[limit - 1]
            return Search(found[:limit], (last.request.at, last.id))
        if end is None:
            return Search(found, None)
        place = (end, 0)
        if time.perf_counter() > deadline:
            return Search(found, place, patient=False)


def _of_kind(tx: Transaction, filters: Mapping[str, Any], limit: int, before: Place | None) -> Search:
    """Search for a class of statuses and nothing else: an index leads to each of its statuses, however rare they are."""
    rest = {name: value for name, value in filters.items() if name != "kind"}
    first, found = filters["kind"] * 100, list[Logged]()
    for status in _statuses(tx, first, first + 99):
        found += search(tx, rest | {"status": status}, limit + 1, before).found
    found.sort(key=lambda one: (one.request.at, one.id), reverse=True)
    last = found[limit - 1] if len(found) > limit else None
    return Search(found[:limit], (last.request.at, last.id) if last else None)


def _statuses(tx: Transaction, first: int, last: int) -> Iterator[int]:
    """Give the statuses that occur, from an index alone."""
    while True:
        least = sa.select(sa.func.min(_c.status)).where(_c.status >= first, _c.status <= last)
        if (status := tx.connection.execute(least).scalar()) is None:
            return
        yield int(status)
        first = status + 1


def _leading(tx: Transaction, filters: Mapping[str, Any]) -> str | None:
    """Choose the filter that the fewest rows pass, as far as can be seen at a glance."""
    named = [name for name in _LEADING if name in filters]
    if len(named) < 2:
        return named[0] if named else None

    def rows(name: str) -> int:
        some = sa.select(sa.literal(1)).where(_is(name, filters[name]), *_reach(filters)).limit(_STRETCH).subquery()
        return int(tx.connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one())

    return min(named, key=rows)


def _is(name: str, value: Any, *, leading: bool = True) -> sa.ColumnElement[bool]:
    column = _c[name] if leading else Beside(_c[name])
    return column.is_(None) if name == "key_id" and value == 0 else column == value


def _reach(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    since, until = filters.get("since"), filters.get("until")
    return ([_c.at >= since] if since else []) + ([_c.at < until] if until else [])


def _before(place: Place | None) -> list[sa.ColumnElement[bool]]:
    if place is None:
        return []
    at, number = place
    return [_c.at <= at, sa.or_(_c.at < at, _c.id < number)]


def _others(filters: Mapping[str, Any], leading: str | None) -> list[sa.ColumnElement[bool]]:
    found = [_is(name, filters[name], leading=False) for name in _LEADING if name in filters and name != leading]
    if "method" in filters:
        found.append(_c.method == filters["method"])
    if "path" in filters:
        found.append(Holds(_c.path, "path"))
    if "kind" in filters:
        found.append(Beside(_c.status).between(filters["kind"] * 100, filters["kind"] * 100 + 99))
    if "slower" in filters:
        found.append(_c.duration >= filters["slower"])
    return found


def _end(tx: Transaction, stretch: Sequence[sa.ColumnElement[bool]]) -> str | None:
    """Give the moment at which a stretch ends; None if the log does before that."""
    statement = sa.select(_c.at).where(*stretch).order_by(_c.at.desc()).limit(1).offset(_STRETCH)
    return tx.connection.execute(statement).scalar()


def estimate(tx: Transaction) -> int:
    """Say how many requests the log holds, without counting them."""
    last, first = (sa.select(end(_c.id)).scalar_subquery() for end in (sa.func.max, sa.func.min))
    return int(tx.connection.execute(sa.select(sa.func.coalesce(last - first + 1, 0))).scalar_one())


def find(tx: Transaction, number: int) -> Logged | None:
    """Read one request."""
    row = tx.connection.execute(sa.select(_c.id, *_MEMBERS).where(_c.id == number)).first()
    return Logged(row[0], Request(*row[1:])) if row else None


def of_operation(tx: Transaction, operation: str, request_id: str, since: str, until: str) -> int | None:
    """Find the request of an id that ran an operation in a span of time; give its number."""
    statement = (
        sa.select(_c.id)
        .where(_c.operation == operation, _c.at >= since, _c.at <= until, Beside(_c.request_id) == request_id, _c.status < 400)
        .order_by(_c.at)
        .limit(1)
    )
    return tx.connection.execute(statement).scalar()


# --- what keys use ------------------------------------------------------------------------------------------------

_REFUSED: Final = (401, 403, 429)
_u = key_uses.c


class Use(NamedTuple):
    """What a key has done with an operation: how often and when last it was let through, and how often it was refused."""

    operation: str
    times: int
    last_at: str | None
    refused: int
    refused_at: str | None


def uses_by_day(tx: Transaction, key: int, since: str) -> dict[tuple[str, int], int]:
    """Count a key's requests by day and first digit of the status, from a day on."""
    digit = _u.status // 100
    statement = (
        sa.select(_u.day, digit, sa.func.sum(_u.times)).where(_u.key_id == key, _u.day >= since[:10]).group_by(_u.day, digit)
    )
    return {(day, int(status)): int(times) for day, status, times in tx.connection.execute(statement)}


def uses(tx: Transaction, key: int) -> list[Use]:
    """Give what a key has done with each operation that it asked for."""
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
    return [Use(name, int(times), last, int(no), no_at) for name, times, last, no, no_at in tx.connection.execute(statement)]
