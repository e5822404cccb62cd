"""Queries for the numbers on the panel's overview."""

from dataclasses import fields

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.keys import Key
from trellis.store.tables import counters, keys, request_hours

_KEY = tuple(keys.c[f.name] for f in fields(Key))


def read_totals(tx: Transaction) -> dict[str, int]:
    """Return the total of each counter, among them one for each kind of node: name → number."""
    return {str(row.name): int(row.total) for row in tx.connection.execute(sa.select(counters.c.name, counters.c.total))}


def count_requests_by_hour(tx: Transaction, since: str) -> dict[tuple[str, int], int]:
    """Return the number of requests in each hour since a timestamp: (hour as `2026-01-31T09`, first digit of status) → number."""
    statement = sa.select(request_hours).where(request_hours.c.hour >= since[:13])
    return {(hour, int(digit)): int(times) for hour, digit, times in tx.connection.execute(statement)}


def _is_active(now: str) -> sa.ColumnElement[bool]:
    unexpired = sa.or_(keys.c.expires_at.is_(None), keys.c.expires_at > now)
    return sa.and_(keys.c.revoked_at.is_(None), keys.c.paused_at.is_(None), unexpired)


def count_active_keys(tx: Transaction, now: str) -> int:
    """Count the keys that are neither expired, nor revoked, nor paused."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(keys).where(_is_active(now))).scalar_one())


def find_expiring_keys(tx: Transaction, now: str, until: str, limit: int, *, brief: tuple[str, str]) -> tuple[int, list[Key]]:
    """Count the active keys that expire by a timestamp, and read the first `limit` of them to expire.

    Keys that were created after the first timestamp of `brief` and expire by the second are left out.
    """
    is_brief = sa.and_(keys.c.created_at > brief[0], keys.c.expires_at <= brief[1])
    return _count_and_read(tx, sa.and_(_is_active(now), keys.c.expires_at <= until, sa.not_(is_brief)), keys.c.expires_at, limit)


def find_unused_keys(tx: Transaction, now: str, since: str, limit: int) -> tuple[int, list[Key]]:
    """Count the active keys created before a timestamp and not used since, and read the `limit` that are unused for longest."""
    used = sa.func.coalesce(keys.c.last_used_at, keys.c.created_at)
    return _count_and_read(tx, sa.and_(_is_active(now), used < since), used, limit)


def _count_and_read(
    tx: Transaction, condition: sa.ColumnElement[bool], order: sa.ColumnElement[str], limit: int
) -> tuple[int, list[Key]]:
    total = tx.connection.execute(sa.select(sa.func.count()).select_from(keys).where(condition)).scalar_one()
    rows = tx.connection.execute(sa.select(*_KEY).where(condition).order_by(order, keys.c.id).limit(limit))
    return int(total), [Key(*row) for row in rows]
