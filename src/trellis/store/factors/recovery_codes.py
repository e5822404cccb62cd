"""The rows of recovery codes, which contain digests. A row is deleted when its code is used."""

from collections.abc import Sequence

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import recovery_codes

_c = recovery_codes.c


def count(tx: Transaction, admin: int) -> int:
    """Count the unused codes of an administrator."""
    return tx.count(recovery_codes, _c.admin_id == admin)


def has(tx: Transaction, admin: int, digest: str) -> bool:
    """Return whether an administrator has this code and has not used it."""
    return tx.connection.execute(sa.select(_c.digest).where(_c.admin_id == admin, _c.digest == digest)).first() is not None


def replace(tx: Transaction, admin: int, digests: Sequence[str]) -> None:
    """Write the codes of an administrator, replacing all earlier ones."""
    tx.connection.execute(sa.delete(recovery_codes).where(_c.admin_id == admin))
    if digests:
        tx.connection.execute(sa.insert(recovery_codes), [{"digest": digest, "admin_id": admin} for digest in digests])


def use(tx: Transaction, admin: int, digest: str) -> bool:
    """Delete a code; return whether it existed."""
    return tx.connection.execute(sa.delete(recovery_codes).where(_c.admin_id == admin, _c.digest == digest)).rowcount > 0
