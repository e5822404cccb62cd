"""The rows of invitations: one for each administrator who is to choose a first password with a one-time link."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from trellis.store.admins.administrators import Administrator
from trellis.store.admins.administrators import find as find_administrator
from trellis.store.engine import Transaction
from trellis.store.tables import invitations

_c = invitations.c


class ValidPeriod(NamedTuple):
    """An invitation is open if it ends after `now`, but not after `latest`: a later end is that of a clock that was ahead."""

    now: str
    latest: str


def put(tx: Transaction, admin: int, digest: str, expires_at: str) -> None:
    """Write the invitation of an administrator, replacing an earlier one."""
    withdraw(tx, admin)
    tx.connection.execute(sa.insert(invitations).values(admin_id=admin, digest=digest, expires_at=expires_at))


def find_invited(tx: Transaction, digest: str, open_until: ValidPeriod) -> Administrator | None:
    """Read the administrator whom a link invites; None if the link is unknown or not open, or the administrator is disabled."""
    found = sa.select(_c.admin_id).where(_c.digest == digest, _is_open(open_until))
    number = tx.connection.execute(found).scalar()
    admin = None if number is None else find_administrator(tx, number)
    return admin if admin is not None and admin.disabled_at is None else None


def find_ends(tx: Transaction, admins: Sequence[int], open_until: ValidPeriod) -> dict[int, str]:
    """Return when the invitations of some administrators expire: id → timestamp. Invitations that are not open are left out."""
    found = sa.select(_c.admin_id, _c.expires_at).where(_c.admin_id.in_(admins), _is_open(open_until))
    return {row[0]: row[1] for row in tx.connection.execute(found)}


def withdraw(tx: Transaction, admin: int) -> bool:
    """Delete the invitation of an administrator; return whether there was one."""
    return tx.connection.execute(sa.delete(invitations).where(_c.admin_id == admin)).rowcount > 0


def purge(tx: Transaction, open_until: ValidPeriod) -> int:
    """Delete the invitations that are not open, and return their number."""
    return tx.connection.execute(sa.delete(invitations).where(~_is_open(open_until))).rowcount


def _is_open(until: ValidPeriod) -> sa.ColumnElement[bool]:
    return sa.and_(_c.expires_at > until.now, _c.expires_at <= until.latest)
