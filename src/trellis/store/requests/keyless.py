"""Requests without a valid key, counted by address and minute, so that millions of them from one address cause only a few rows."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Transaction, upsert
from trellis.store.requests.log import count_hour
from trellis.store.tables import keyless_requests

_c = keyless_requests.c
_MOST: Final = 200_000  # rows to keep, about 20 MB


class KeylessCount(NamedTuple):
    """The number of requests without a valid key that an address sent in a minute (`2026-01-31T09:30`), with one status and error.

    `address` is an address, an IPv6 network, or `others`; `error` is an errorCode, or "" for none.
    """

    minute: str
    address: str
    status: int
    error: str
    times: int


_COUNT: Final = upsert(keyless_requests, "times = keyless_requests.times + excluded.times")


def append_keyless(tx: Transaction, counted: Sequence[KeylessCount]) -> None:
    """Add counts, both to these rows and to the numbers of requests by hour."""
    hours = Counter[tuple[str, int]]()
    for one in counted:
        tx.execute(_COUNT, **one._asdict())
        hours[one.minute[:13], one.status // 100] += one.times
    for (hour, digit), times in hours.items():
        count_hour(tx, hour, digit, times)


def search_keyless(tx: Transaction, address: str | None, since: str | None, until: str | None, limit: int) -> list[KeylessCount]:
    """Read at most `limit` counts, newest minute first, and within a minute the largest first."""
    statement = sa.select(_c.minute, _c.address, _c.status, _c.error, _c.times)
    if address is not None:
        statement = statement.where(_c.address == address)
    if since is not None:
        statement = statement.where(_c.minute >= since[:16])
    if until is not None:
        statement = statement.where(_c.minute < until[:16])
    statement = statement.order_by(_c.minute.desc(), _c.times.desc(), _c.address, _c.status, _c.error).limit(limit)
    return [KeylessCount(*row) for row in tx.connection.execute(statement)]


def purge_keyless(tx: Transaction, before: str, most: int = _MOST) -> int:
    """Delete the counts from before a timestamp, and the oldest counts if there are more than `most`; return their number."""
    gone = tx.connection.execute(sa.delete(keyless_requests).where(_c.minute < before[:16])).rowcount
    last = tx.connection.execute(sa.select(_c.minute).order_by(_c.minute.desc()).limit(1).offset(most)).scalar()
    if last is not None:
        gone += tx.connection.execute(sa.delete(keyless_requests).where(_c.minute <= last)).rowcount
    return gone
