"""The rows of authenticator apps: at most one for each administrator."""

from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import authenticators

_c = authenticators.c


@dataclass(frozen=True, slots=True)
class Authenticator:
    """An authenticator app. Its secret is derived from `salt`; `step` is the time step of the newest code that was accepted."""

    admin_id: int
    salt: str
    step: int
    created_at: str
    used_at: str | None


def find(tx: Transaction, admin: int) -> Authenticator | None:
    """Read the app of an administrator."""
    columns = (_c[f.name] for f in fields(Authenticator))
    row = tx.connection.execute(sa.select(*columns).where(_c.admin_id == admin)).first()
    return Authenticator(*row) if row else None


def save(tx: Transaction, app: Authenticator) -> None:
    """Write an app, replacing the one that its administrator has."""
    delete(tx, app.admin_id)
    tx.connection.execute(sa.insert(authenticators).values(**asdict(app)))


def delete(tx: Transaction, admin: int) -> None:
    """Delete the app of an administrator."""
    tx.connection.execute(sa.delete(authenticators).where(_c.admin_id == admin))
