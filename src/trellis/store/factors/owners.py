"""The kinds of second factors that administrators have, and how many administrators have any."""

from collections.abc import Collection

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import administrators, authenticators, passkeys, recovery_codes


def find_kinds(tx: Transaction, admins: Collection[int]) -> dict[int, list[str]]:
    """Return the kinds of second factors of some administrators: id → some of `passkey` and `app`. Those without are left out."""
    found: dict[int, list[str]] = {}
    for kind, table in (("passkey", passkeys), ("app", authenticators)):
        statement = sa.select(table.c.admin_id).where(table.c.admin_id.in_(admins)).distinct()
        for admin in tx.connection.execute(statement).scalars():
            found.setdefault(admin, []).append(kind)
    return found


def count_with_factors(tx: Transaction) -> tuple[int, int]:
    """Count the administrators who are not disabled: those with a second factor, and all."""
    c = administrators.c
    has = sa.or_(*(sa.exists().where(table.c.admin_id == c.id) for table in (passkeys, authenticators)))
    is_enabled = c.disabled_at.is_(None)
    return tx.count(administrators, is_enabled, has), tx.count(administrators, is_enabled)


def delete_all(tx: Transaction, admin: int) -> int:
    """Delete all second factors and recovery codes of an administrator; return the number of deleted rows."""
    return sum(
        tx.connection.execute(sa.delete(table).where(table.c.admin_id == admin)).rowcount
        for table in (passkeys, authenticators, recovery_codes)
    )
