"""Requests without a good key, counted by address and minute: whoever sends millions of them makes a few rows."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.requests.log import count_hour
from trellis.store.tables import keyless_requests

_c = keyless_requests.c
_MOST: Final = 200_000  # rows that are kept, some 20 MB


class KeylessCount(NamedTuple):
    """How many requests without a good key an address sent in a minute (`2026-01-31T09:30`) that were answered alike.

    `address` is an address, an IPv6 network, or `others`; `error` an errorCode, "" for none.
    """

    minute: str
    address: str
    status: int
    error: str
    times: int


_COUNT: Final = Statement(
    sa.text(
        "INSERT INTO keyless_requests (minute, address, status, error, times) VALUES (:minute, :address, :status, :error, :times) "
        "ON CONFLICT (minute, address, status, error) DO UPDATE SET times = keyless_requests.times + excluded.times"
    )
)


def append_keyless(tx: Transaction, counted: Sequence[KeylessCount]) -> None:
    """Add counts, to those by hour too."""
    hours = Counter[tuple[str, int]]()
    for one in counted:
        tx.execute(_COUNT, **one._asdict())
        hours[one.minute[:13], one.status // 100] += one.times
    for (hour, digit), times in hours.items():
        count_hour(tx, hour, digit, times)


def search_keyless(tx: Transaction, address: str | None, since: str | None, until: str | None, limit: int) -> list[KeylessCount]:
    """Read the counts, the newest first and in a minute the largest, at most `limit`."""
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
    """Delete the counts from before a timestamp, and the oldest of those that are too many; return their number."""
    gone = tx.connection.execute(sa.delete(keyless_requests).where(_c.minute < before[:16])).rowcount
    last = tx.connection.execute(sa.select(_c.minute).order_by(_c.minute.desc()).limit(1).offset(most)).scalar()
    if last is not None:
        gone += tx.connection.execute(sa.delete(keyless_requests).where(_c.minute <= last)).rowcount
    return gone
