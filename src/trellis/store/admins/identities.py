"""The rows of identities, which link administrators to accounts at an OpenID provider by issuer and subject."""

from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import identities

_c = identities.c


@dataclass(frozen=True, slots=True)
class Identity:
    """The account of an administrator at a provider. `login` is only for display; `state` is from the newest sign-on."""

    issuer: str
    subject: str
    admin_id: int
    login: str
    state: str | None
    created_at: str
    used_at: str | None


_COLUMNS = tuple(_c[f.name] for f in fields(Identity))


def find(tx: Transaction, issuer: str, subject: str) -> Identity | None:
    """Read an identity."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.issuer == issuer, _c.subject == subject)).first()
    return Identity(*row) if row else None


def find_by_admin(tx: Transaction, admin: int) -> list[Identity]:
    """Read the identities of an administrator, at most one for each issuer."""
    return [Identity(*row) for row in tx.connection.execute(sa.select(*_COLUMNS).where(_c.admin_id == admin).order_by(_c.issuer))]


def insert(tx: Transaction, identity: Identity) -> None:
    """Insert an identity."""
    tx.connection.execute(sa.insert(identities).values(**asdict(identity)))


def update(tx: Transaction, identity: Identity) -> None:
    """Write a changed identity."""
    same = (_c.issuer == identity.issuer, _c.subject == identity.subject)
    tx.connection.execute(sa.update(identities).where(*same).values(**asdict(identity)))


def delete(tx: Transaction, identity: Identity) -> None:
    """Delete an identity."""
    tx.connection.execute(sa.delete(identities).where(_c.issuer == identity.issuer, _c.subject == identity.subject))
