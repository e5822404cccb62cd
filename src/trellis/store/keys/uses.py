"""How often grants with a daily limit were used on each day (UTC)."""

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction, upsert
from trellis.store.tables import grant_uses

_u = grant_uses.c
_TAKE = upsert(
    grant_uses, "times = grant_uses.times + excluded.times WHERE grant_uses.times + excluded.times <= :most RETURNING times"
)


def reserve(tx: Transaction, key: int, operation: str, day: str, most: int, times: int) -> bool:
    """Count uses of a grant on a day, unless the total would exceed `most`; return whether they were counted."""
    return times <= most and bool(tx.fetch(_TAKE, key_id=key, operation=operation, day=day, most=most, times=times))


_TAKE_OFF = Statement(
    sa.text(
        "UPDATE grant_uses SET times = times - :less "
        "WHERE key_id = :key AND operation = :operation AND day = :day AND times >= :less"
    )
)


def take_off(tx: Transaction, key: int, operation: str, day: str, times: int) -> None:
    """Subtract uses of a grant on a day that were counted before."""
    tx.execute(_TAKE_OFF, key=key, operation=operation, day=day, less=times)


_THIS = (_u.key_id == bindparam("key"), _u.operation == bindparam("operation"), _u.day == bindparam("day"))
_FIND = Statement(sa.select(_u.times).where(*_THIS))


def find_times(tx: Transaction, key: int, operation: str, day: str) -> int:
    """Return how often a grant was used on a day."""
    rows = tx.fetch(_FIND, key=key, operation=operation, day=day)
    return int(rows[0][0]) if rows else 0


def purge(tx: Transaction, first: str, last: str) -> int:
    """Delete the counts of the days before `first` and after `last`, and return their number."""
    return tx.connection.execute(sa.delete(grant_uses).where(sa.or_(_u.day < first, _u.day > last))).rowcount
