"""Writing the request log in batches, and counting the requests by key and day, by key and quarter of an hour, and by hour."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.requests.request import Request
from trellis.store.requests.size import count_bytes, delete_and_count
from trellis.store.tables import key_quarters, key_uses, request_hours, requests

_PER_STATEMENT: Final = 80  # requests in one statement; some builds of SQLite accept only 999 parameters


@cache
def _insert(count: int, *, sqlite: bool) -> str:
    """Build one statement for many requests. One for each would switch the interpreter lock between threads each time."""
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
_COUNT_QUARTER = Statement(
    sa.text(
        "INSERT INTO key_quarters (key_id, quarter, digit, times) VALUES (:key, :quarter, :digit, :times) "
        "ON CONFLICT (key_id, quarter, digit) DO UPDATE SET times = key_quarters.times + excluded.times"
    )
)
_COUNT_HOUR = Statement(
    sa.text(
        "INSERT INTO request_hours (hour, digit, times) VALUES (:hour, :digit, :times) "
        "ON CONFLICT (hour, digit) DO UPDATE SET times = request_hours.times + excluded.times"
    )
)


def append(tx: Transaction, batch: Sequence[Request]) -> None:
    """Write completed requests, in order of time; count uses of keys by day and by quarter of an hour, and requests by hour.

    Those without a key are examples of what `append_keyless` counts, and not counted here.
    """
    for first in range(0, len(batch), _PER_STATEMENT):
        part = batch[first : first + _PER_STATEMENT]
        tx.raw.execute(_insert(len(part), sqlite=tx.sqlite), tuple(chain.from_iterable(part)))
    count_bytes(tx, batch)
    for quarter, group in groupby(batch, key=_quarter):
        rows = list(group)
        uses, last = Counter(map(_USE, rows)), dict(zip(map(_USE, rows), map(_AT, rows), strict=True))
        for use, times in uses.items():
            key, operation, status = use
            if key is not None:
                params = {"key": key, "day": quarter[:10], "operation": operation or "", "status": status}
                tx.execute(_COUNT_USES, **params, times=times, last=last[use])
        of_keys = Counter[tuple[int, int]]()
        for (key, _, status), times in uses.items():
            if key is not None:
                of_keys[key, status // 100] += times
        for (key, digit), times in of_keys.items():
            tx.execute(_COUNT_QUARTER, key=key, quarter=quarter, digit=digit, times=times)
        for digit in {digit for _, digit in of_keys}:
            count_hour(tx, quarter[:13], digit, sum(times for (_, its), times in of_keys.items() if its == digit))


def count_hour(tx: Transaction, hour: str, digit: int, times: int) -> None:
    """Count requests that were answered in an hour, by the first digit of their status."""
    tx.execute(_COUNT_HOUR, hour=hour, digit=digit, times=times)


def _quarter(request: Request) -> str:
    return f"{request.at[:14]}{int(request.at[14:16] or 0) // 15 * 15:02}"


_AT = attrgetter("at")
_USE = attrgetter("key_id", "operation", "status")


def purge(tx: Transaction, *, successes_before: str, failures_before: str, uses_before: str = "", most: int = 5000) -> int:
    """Delete expired requests and counts, at most `most` requests; return the number of rows deleted."""
    old = sa.or_(
        sa.and_(requests.c.status < 400, requests.c.at < successes_before),
        sa.and_(requests.c.status >= 400, requests.c.at < failures_before),
    )
    stale = sa.select(requests.c.id).where(requests.c.at < max(successes_before, failures_before), old).limit(most)
    gone = delete_and_count(tx, stale)
    gone += tx.connection.execute(sa.delete(key_uses).where(key_uses.c.day < uses_before[:10])).rowcount
    gone += tx.connection.execute(sa.delete(key_quarters).where(key_quarters.c.quarter < uses_before[:16])).rowcount
    return gone + tx.connection.execute(sa.delete(request_hours).where(request_hours.c.hour < uses_before[:13])).rowcount
