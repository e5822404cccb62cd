"""The rows of administrators, and the one-time links that make the first of them."""

from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import administrators, links

_c = administrators.c


@dataclass(slots=True)
class Administrator:
    """An administrator as they are kept: never a password, only its argon2id digest. Moments are ISO 8601 text, UTC."""

    id: int
    name: str
    login: str
    digest: str
    created_at: str
    updated_at: str
    disabled_at: str | None
    last_seen_at: str | None


_COLUMNS = tuple(_c[f.name] for f in fields(Administrator))


def login_key(login: str) -> str:
    """Write a login as it is compared: capitals and small letters alike."""
    return login.strip().casefold()


def find(tx: Transaction, admin: int) -> Administrator | None:
    """Read one administrator."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id == admin)).first()
    return Administrator(*row) if row else None


def by_login(tx: Transaction, login: str) -> Administrator | None:
    """Read an administrator by their login."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.login_key == login_key(login))).first()
    return Administrator(*row) if row else None


def page(tx: Transaction, limit: int, offset: int) -> tuple[int, list[Administrator]]:
    """Read a page of administrators, disabled ones too, and how many there are."""
    rows = tx.connection.execute(sa.select(*_COLUMNS).order_by(_c.id).limit(limit).offset(offset))
    return count(tx), [Administrator(*row) for row in rows]


def count(tx: Transaction) -> int:
    """Count the administrators."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(administrators)).scalar_one())


def others_enabled(tx: Transaction, admin: int) -> int:
    """Count the administrators who can sign in, this one apart."""
    statement = sa.select(sa.func.count()).select_from(administrators).where(_c.disabled_at.is_(None), _c.id != admin)
    return int(tx.connection.execute(statement).scalar_one())


def insert(tx: Transaction, admin: Administrator) -> None:
    """Write a new administrator."""
    tx.connection.execute(sa.insert(administrators).values(**asdict(admin), login_key=login_key(admin.login)))


def update(tx: Transaction, admin: Administrator) -> None:
    """Write a changed administrator; when they were last seen is bookkeeping and left alone."""
    values = asdict(admin)
    del values["last_seen_at"]
    tx.connection.execute(sa.update(administrators).where(_c.id == admin.id).values(**values, login_key=login_key(admin.login)))


def keep_link(tx: Transaction, digest: str, expires_at: str, now: str) -> None:
    """Keep a one-time link until it expires; those that have expired go."""
    tx.connection.execute(sa.delete(links).where(links.c.expires_at <= now))
    tx.connection.execute(sa.insert(links).values(digest=digest, expires_at=expires_at))


def link_is_good(tx: Transaction, digest: str, now: str) -> bool:
    """Say whether a one-time link can still be used."""
    statement = sa.select(links.c.digest).where(links.c.digest == digest, links.c.expires_at > now)
    return tx.connection.execute(statement).first() is not None


def spend_links(tx: Transaction) -> None:
    """Take all one-time links away."""
    tx.connection.execute(sa.delete(links))
