"""The rows of passkeys."""

from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import passkeys

_c = passkeys.c


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey of an administrator. `challenge` is the newest one that it has answered; `uses` is its own count of uses."""

    id: int
    admin_id: int
    name: str
    credential: str
    public_key: str
    uses: int
    challenge: str | None
    is_synced: bool
    created_at: str
    used_at: str | None


_COLUMNS = tuple(_c[f.name] for f in fields(Passkey))


def find_by_credential(tx: Transaction, credential: str) -> Passkey | None:
    """Read a passkey by its credential id, in base64url."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.credential == credential)).first()
    return Passkey(*row) if row else None


def find_by_admin(tx: Transaction, admin: int) -> list[Passkey]:
    """Read the passkeys of an administrator, the oldest first."""
    return [Passkey(*row) for row in tx.connection.execute(sa.select(*_COLUMNS).where(_c.admin_id == admin).order_by(_c.id))]


def insert(tx: Transaction, passkey: Passkey) -> None:
    """Insert a passkey."""
    tx.connection.execute(sa.insert(passkeys).values(**asdict(passkey)))


def update(tx: Transaction, passkey: Passkey) -> None:
    """Write a changed passkey."""
    tx.connection.execute(sa.update(passkeys).where(_c.id == passkey.id).values(**asdict(passkey)))


def delete(tx: Transaction, passkey: int) -> None:
    """Delete a passkey."""
    tx.connection.execute(sa.delete(passkeys).where(_c.id == passkey))
