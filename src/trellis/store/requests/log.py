"""Writing the request log: in batches of answered requests, which are counted by key and day, and by hour."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import key_uses, request_hours, requests


class Request(NamedTuple):
    """One answered request. `path` has no query, `duration` is in microseconds, `error` is an errorCode."""

    at: str
    method: str
    path: str
    operation: str | None
    key_id: int | None
    address: str
    status: int
    duration: int
    request_id: str
    error: str | None


_PER_STATEMENT: Final = 80  # requests in one statement; a SQLite may be built to take no more than 999 parameters


@cache
def _insert(count: int, *, sqlite: bool) -> str:
    """Build one statement for many requests: one for each would hand the interpreter lock to and fro each time."""
    row = f"({', '.join('?' if sqlite else '%s' for _ in Request._fields)})"
    return f"INSERT INTO requests ({', '.join(Request._fields)}) VALUES {', '.join([row] * count)}"  # noqa: S608  # no values


_COUNT_USES = Statement(
    sa.text(
        "INSERT INTO key_uses (key_id, day, operation, status, times, last_at) "
        "VALUES (:key, :day, :operation, :status, :times, :last) "
        "ON CONFLICT (key_id, day, operation, status) DO UPDATE SET times = key_uses.times + excluded.times, "
        "last_at = CASE WHEN excluded.last_at > key_uses.last_at THEN excluded.last_at ELSE key_uses.last_at END"
    )
)
_COUNT_HOUR = Statement(
    sa.text(
        "INSERT INTO request_hours (hour, digit, times) VALUES (:hour, :digit, :times) "
        "ON CONFLICT (hour, digit) DO UPDATE SET times = request_hours.times + excluded.times"
    )
)


def append(tx: Transaction, batch: Sequence[Request]) -> None:
    """Write answered requests, in order of time; count the uses of keys by day, and the requests by hour."""
    for first in range(0, len(batch), _PER_STATEMENT):
        part = batch[first : first + _PER_STATEMENT]
        tx.raw.execute(_insert(len(part), sqlite=tx.sqlite), tuple(chain.from_iterable(part)))
    for hour, group in groupby(batch, key=_hour):
        rows = list(group)
        uses, last = Counter(map(_USE, rows)), dict(zip(map(_USE, rows), map(_AT, rows), strict=True))
        for use, times in uses.items():
            key, operation, status = use
            if key is not None:
                params = {"key": key, "day": hour[:10], "operation": operation or "", "status": status}
                tx.execute(_COUNT_USES, **params, times=times, last=last[use])
        for digit in {status // 100 for _, _, status in uses}:
            times = sum(times for (_, _, status), times in uses.items() if status // 100 == digit)
            tx.execute(_COUNT_HOUR, hour=hour, digit=digit, times=times)


def _hour(request: Request) -> str:
    return request.at[:13]


_AT = attrgetter("at")
_USE = attrgetter("key_id", "operation", "status")


def purge(tx: Transaction, *, successes_before: str, failures_before: str, uses_before: str = "", most: int = 5000) -> int:
    """Delete requests and counts that are older than they are kept, at most `most` requests; return the number of rows deleted."""
    old = sa.or_(
        sa.and_(requests.c.status < 400, requests.c.at < successes_before),
        sa.and_(requests.c.status >= 400, requests.c.at < failures_before),
    )
    stale = sa.select(requests.c.id).where(requests.c.at < max(successes_before, failures_before), old).limit(most)
    gone = tx.connection.execute(sa.delete(requests).where(requests.c.id.in_(stale))).rowcount
    gone += tx.connection.execute(sa.delete(key_uses).where(key_uses.c.day < uses_before[:10])).rowcount
    return gone + tx.connection.execute(sa.delete(request_hours).where(request_hours.c.hour < uses_before[:13])).rowcount
