"""The rows of administrators, and the one-time links for creating the first administrator."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import administrators, alarms, first_run_links, identities

_c = administrators.c
NO_PASSWORD: Final = "-"  # noqa: S105  # no password: it replaces the digest of administrators who sign in only at a provider


@dataclass(slots=True)
class Administrator:
    """An administrator as stored, with the argon2id digest of the password, never the password. Timestamps are ISO 8601, UTC."""

    id: int
    name: str
    login: str
    digest: str  # "" until an invited administrator has chosen a password; NO_PASSWORD for one who needs none
    created_at: str
    updated_at: str
    disabled_at: str | None
    last_seen_at: str | None
    must_change: bool = False
    role: str = "owner"
    kinds: str | None = None  # the kinds that the role covers, separated by commas; None for all
    email: str | None = None
    mailed_alarms: str = "*"  # the names of the alarms mailed to the administrator, separated by commas; * for all

    @property
    def has_password(self) -> bool:
        """Whether the administrator has a password in Trellis."""
        return self.digest not in ("", NO_PASSWORD)


class HeldRole(NamedTuple):
    """The role of an administrator, the kinds that it covers, and when the administrator was disabled."""

    role: str
    kinds: str | None
    disabled_at: str | None


_COLUMNS = tuple(_c[f.name] for f in fields(Administrator))
_ROLE = Statement(sa.select(_c.role, _c.kinds, _c.disabled_at).where(_c.id == sa.bindparam("admin")))


def fold_login(login: str) -> str:
    """Return the form in which logins are compared: trimmed and case-folded."""
    return login.strip().casefold()


def find(tx: Transaction, admin: int) -> Administrator | None:
    """Read one administrator."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id == admin)).first()
    return Administrator(*row) if row else None


def find_by_login(tx: Transaction, login: str) -> Administrator | None:
    """Read an administrator by a login as it was typed."""
    if "\0" in login:  # no login contains it, and PostgreSQL does not accept it in a query
        return None
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.login_key == fold_login(login))).first()
    return Administrator(*row) if row else None


def read_page(tx: Transaction, limit: int, offset: int) -> tuple[int, list[Administrator]]:
    """Read a page of administrators, including disabled ones; return the number of all administrators and the page."""
    rows = tx.connection.execute(sa.select(*_COLUMNS).order_by(_c.id).limit(limit).offset(offset))
    return count(tx), [Administrator(*row) for row in rows]


def list_names(tx: Transaction) -> list[tuple[int, str]]:
    """Return the id and the name of each administrator, including disabled ones: events keep naming them."""
    return [(row.id, row.name) for row in tx.connection.execute(sa.select(_c.id, _c.name).order_by(_c.id))]


def count(tx: Transaction) -> int:
    """Count the administrators."""
    return tx.count(administrators)


HAS_PASSWORD: Final = sa.and_(_c.digest != "", _c.digest != NO_PASSWORD)  # the same as `Administrator.has_password`


def _at_provider(issuer: str) -> sa.ColumnElement[bool]:
    return sa.exists().where(identities.c.admin_id == _c.id, identities.c.issuer == issuer)


def count_others_enabled(tx: Transaction, admin: int, role: str, issuer: str) -> int:
    """Count the administrators with a role, other than `admin`, who can sign in with a password or at the provider `issuer`."""
    can = (_c.disabled_at.is_(None), _c.role == role, sa.or_(HAS_PASSWORD, _at_provider(issuer)))
    return tx.count(administrators, *can, _c.id != admin)


def any_can_sign_in(tx: Transaction, issuer: str, local: str | None) -> bool:
    """Return whether any administrator can sign in: at the provider `issuer` ("" for none), or with a password.

    If `local` is a role, only administrators with that role may sign in with a password.
    """
    locally = HAS_PASSWORD if local is None else sa.and_(HAS_PASSWORD, _c.role == local)
    can = (_c.disabled_at.is_(None), sa.or_(locally, _at_provider(issuer)))
    return tx.connection.execute(sa.select(_c.id).where(*can).limit(1)).first() is not None


def find_role(tx: Transaction, admin: int) -> HeldRole | None:
    """Return the role of an administrator, even if the administrator is disabled."""
    rows = tx.fetch(_ROLE, admin=admin)
    return HeldRole(*rows[0]) if rows else None


def insert(tx: Transaction, admin: Administrator) -> None:
    """Insert an administrator."""
    newest = sa.select(sa.func.coalesce(sa.func.max(alarms.c.event), 0)).scalar_subquery()  # earlier alarms are no news to them
    values = {**asdict(admin), "login_key": fold_login(admin.login), "alarms_read": newest, "alarms_mailed": newest}
    tx.connection.execute(sa.insert(administrators).values(**values))


def update(tx: Transaction, admin: Administrator) -> None:
    """Write a changed administrator, except `last_seen_at`, which is bookkeeping."""
    values = asdict(admin)
    del values["last_seen_at"]
    tx.connection.execute(sa.update(administrators).where(_c.id == admin.id).values(**values, login_key=fold_login(admin.login)))


def renew_digest(tx: Transaction, admin: int, digest: str, other: str) -> bool:
    """Replace the digest of a password by another digest of it; return False if the stored digest has changed meanwhile."""
    renewal = sa.update(administrators).where(_c.id == admin, _c.digest == digest).values(digest=other)
    return tx.connection.execute(renewal).rowcount > 0


def set_view(tx: Transaction, admin: int, changes: Mapping[str, str | bool]) -> None:
    """Record an administrator's choices for the panel: some of `zone`, `shows_utc`, `theme` and `language`."""
    tx.connection.execute(sa.update(administrators).where(_c.id == admin).values(**changes))


def put_link(tx: Transaction, digest: str, expires_at: str) -> None:
    """Write a one-time link, replacing all earlier ones."""
    delete_links(tx)
    tx.connection.execute(sa.insert(first_run_links).values(digest=digest, expires_at=expires_at))


def is_valid_link(tx: Transaction, digest: str, now: str) -> bool:
    """Return whether a one-time link exists and has not expired."""
    statement = sa.select(first_run_links.c.digest).where(first_run_links.c.digest == digest, first_run_links.c.expires_at > now)
    return tx.connection.execute(statement).first() is not None


def delete_links(tx: Transaction) -> None:
    """Delete all one-time links."""
    tx.connection.execute(sa.delete(first_run_links))
