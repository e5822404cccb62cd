"""The rows of administrators, and the one-time links that create the first of them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import administrators, alarms, first_run_links, identities

_c = administrators.c
NO_PASSWORD: Final = "-"  # noqa: S105  # no password, but in place of the digest of whoever signs in at the provider alone


@dataclass(slots=True)
class Administrator:
    """An administrator as stored: never a password, only its argon2id digest. Timestamps are ISO 8601 text, UTC."""

    id: int
    name: str
    login: str
    digest: str  # "" for whoever is invited and has chosen no password yet, NO_PASSWORD for whoever needs none
    created_at: str
    updated_at: str
    disabled_at: str | None
    last_seen_at: str | None
    must_change: bool = False
    role: str = "owner"
    kinds: str | None = None  # that the role is for, with commas between; None for all
    email: str | None = None
    mailed_alarms: str = "*"  # the names of the alarms that are mailed to them, with commas between; * for all

    @property
    def has_password(self) -> bool:
        """Whether they have a password of their own here."""
        return self.digest not in ("", NO_PASSWORD)


class HeldRole(NamedTuple):
    """The role of an administrator, the kinds that it is for, and since when they are disabled."""

    role: str
    kinds: str | None
    disabled_at: str | None


_COLUMNS = tuple(_c[f.name] for f in fields(Administrator))
_ROLE = Statement(sa.select(_c.role, _c.kinds, _c.disabled_at).where(_c.id == sa.bindparam("admin")))


def fold_login(login: str) -> str:
    """Return the form of a login that is compared: trimmed and case-folded."""
    return login.strip().casefold()


def find(tx: Transaction, admin: int) -> Administrator | None:
    """Read one administrator."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id == admin)).first()
    return Administrator(*row) if row else None


def find_by_login(tx: Transaction, login: str) -> Administrator | None:
    """Read an administrator by their login, as somebody has typed it."""
    if "\0" in login:  # nobody's, and nothing that PostgreSQL could be asked for
        return None
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.login_key == fold_login(login))).first()
    return Administrator(*row) if row else None


def read_page(tx: Transaction, limit: int, offset: int) -> tuple[int, list[Administrator]]:
    """Read a page of administrators, including disabled ones, and the number of all."""
    rows = tx.connection.execute(sa.select(*_COLUMNS).order_by(_c.id).limit(limit).offset(offset))
    return count(tx), [Administrator(*row) for row in rows]


def count(tx: Transaction) -> int:
    """Count the administrators."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(administrators)).scalar_one())


def count_others_enabled(tx: Transaction, admin: int, role: str, issuer: str) -> int:
    """Count the administrators with a role who can sign in, here or at a provider, excluding this one."""
    at_provider = sa.exists().where(identities.c.admin_id == _c.id, identities.c.issuer == issuer)
    can = (_c.disabled_at.is_(None), _c.role == role, sa.or_(_c.digest.not_in(("", NO_PASSWORD)), at_provider))
    others = sa.select(sa.func.count()).select_from(administrators).where(*can, _c.id != admin)
    return int(tx.connection.execute(others).scalar_one())


def has_owner_with_password(tx: Transaction, role: str) -> bool:
    """Return whether somebody with a role can sign in with a password of their own."""
    can = (_c.disabled_at.is_(None), _c.digest.not_in(("", NO_PASSWORD)), _c.role == role)
    return tx.connection.execute(sa.select(_c.id).where(*can).limit(1)).first() is not None


def find_role(tx: Transaction, admin: int) -> HeldRole | None:
    """Return the role of an administrator, which those who are disabled keep."""
    rows = tx.fetch(_ROLE, admin=admin)
    return HeldRole(*rows[0]) if rows else None


def insert(tx: Transaction, admin: Administrator) -> None:
    """Insert an administrator."""
    newest = sa.select(sa.func.coalesce(sa.func.max(alarms.c.event), 0)).scalar_subquery()  # what was before is no news to them
    values = {**asdict(admin), "login_key": fold_login(admin.login), "alarms_read": newest, "alarms_mailed": newest}
    tx.connection.execute(sa.insert(administrators).values(**values))


def update(tx: Transaction, admin: Administrator) -> None:
    """Write a changed administrator, but not when they were last seen, which is bookkeeping."""
    values = asdict(admin)
    del values["last_seen_at"]
    tx.connection.execute(sa.update(administrators).where(_c.id == admin.id).values(**values, login_key=fold_login(admin.login)))


def renew_digest(tx: Transaction, admin: int, digest: str, other: str) -> bool:
    """Put another digest of the same password in place of one; return False if that was changed meanwhile."""
    renewal = sa.update(administrators).where(_c.id == admin, _c.digest == digest).values(digest=other)
    return tx.connection.execute(renewal).rowcount > 0


def set_view(tx: Transaction, admin: int, changes: Mapping[str, str | bool]) -> None:
    """Record how an administrator sees the panel: some of `zone`, `shows_utc`, `theme` and `language`."""
    tx.connection.execute(sa.update(administrators).where(_c.id == admin).values(**changes))


def add_link(tx: Transaction, digest: str, expires_at: str, now: str) -> None:
    """Add a one-time link, and delete those that have expired."""
    tx.connection.execute(sa.delete(first_run_links).where(first_run_links.c.expires_at <= now))
    tx.connection.execute(sa.insert(first_run_links).values(digest=digest, expires_at=expires_at))


def is_valid_link(tx: Transaction, digest: str, now: str) -> bool:
    """Return whether a one-time link exists and has not expired."""
    statement = sa.select(first_run_links.c.digest).where(first_run_links.c.digest == digest, first_run_links.c.expires_at > now)
    return tx.connection.execute(statement).first() is not None


def delete_links(tx: Transaction) -> None:
    """Delete all one-time links."""
    tx.connection.execute(sa.delete(first_run_links))
