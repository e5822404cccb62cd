"""What the overview counts, each in one statement."""

from dataclasses import fields

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.keys import Key
from trellis.store.tables import counters, keys, request_hours

_KEY = tuple(keys.c[f.name] for f in fields(Key))


def totals(tx: Transaction) -> dict[str, int]:
    """Give how many there are of each kind of node."""
    return {str(row.name): int(row.total) for row in tx.connection.execute(sa.select(counters.c.name, counters.c.total))}


def requests_by_hour(tx: Transaction, since: str) -> dict[tuple[str, int], int]:
    """Give the requests by hour (`2026-01-31T09`) and first digit of the status, as the log's writer has counted them."""
    statement = sa.select(request_hours).where(request_hours.c.hour >= since[:13])
    return {(hour, int(digit)): int(times) for hour, digit, times in tx.connection.execute(statement)}


def _living(now: str) -> sa.ColumnElement[bool]:
    unexpired = sa.or_(keys.c.expires_at.is_(None), keys.c.expires_at > now)
    return sa.and_(keys.c.revoked_at.is_(None), unexpired)


def keys_in_use(tx: Transaction, now: str) -> int:
    """Count the keys that are neither expired nor revoked."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(keys).where(_living(now))).scalar_one())


def expiring(tx: Transaction, now: str, until: str, limit: int) -> tuple[int, list[Key]]:
    """Count the living keys that end before a moment; give those that end first."""
    return _some(tx, sa.and_(_living(now), keys.c.expires_at <= until), keys.c.expires_at, limit)


def unused(tx: Transaction, now: str, since: str, limit: int) -> tuple[int, list[Key]]:
    """Count the living keys, made before a moment, that were not used since; give those unused for longest."""
    used = sa.func.coalesce(keys.c.last_used_at, keys.c.created_at)
    return _some(tx, sa.and_(_living(now), used < since), used, limit)


def _some(tx: Transaction, condition: sa.ColumnElement[bool], order: sa.ColumnElement[str], limit: int) -> tuple[int, list[Key]]:
    total = tx.connection.execute(sa.select(sa.func.count()).select_from(keys).where(condition)).scalar_one()
    rows = tx.connection.execute(sa.select(*_KEY).where(condition).order_by(order, keys.c.id).limit(limit))
    return int(total), [Key(*row) for row in rows]
