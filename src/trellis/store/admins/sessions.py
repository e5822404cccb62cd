"""The rows of the panel's sessions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.admins.administrators import HAS_PASSWORD
from trellis.store.engine import Statement, TextIn, Transaction
from trellis.store.tables import administrators, authenticators, identities, passkeys, sessions

_c = sessions.c


@dataclass(slots=True)
class Session:
    """A session of an administrator. `digest` is the SHA-256 of its cookie.

    `confirmed_until` is the time until which the administrator need not confirm their identity again, or None. `issuer` is the
    provider at which the session began; None if it began with a password or a passkey.
    """

    digest: str
    admin_id: int
    created_at: str
    seen_at: str
    expires_at: str
    confirmed_until: str | None
    address: str
    agent: str
    confirmed_with: str | None = None
    issuer: str | None = None


class SessionLimits(NamedTuple):
    """What makes a session live: it expires after `now`, was used after `idle`, and began with a password or at `issuer`.

    It was not used after `ahead`: otherwise, it began when the clock was ahead, and its times say nothing.
    """

    now: str
    idle: str
    ahead: str
    issuer: str


_COLUMNS = tuple(_c[f.name] for f in fields(Session))
_IS_CURRENT = sa.and_(
    _c.expires_at > bindparam("now"),
    _c.seen_at > bindparam("idle"),
    _c.seen_at <= bindparam("ahead"),
    sa.or_(_c.issuer.is_(None), _c.issuer == bindparam("issuer")),  # sessions of a provider end when the settings no longer name it
)
_IS_LIVE = sa.and_(
    _IS_CURRENT,
    administrators.c.id == _c.admin_id,
    administrators.c.disabled_at.is_(None),
)
_LIVE = Statement(
    sa.select(
        *_COLUMNS,
        administrators.c.name,
        administrators.c.login,
        administrators.c.must_change,
        *(sa.exists().where(table.c.admin_id == _c.admin_id) for table in (passkeys, authenticators)),
        administrators.c.role,
        administrators.c.kinds,
        HAS_PASSWORD,
        sa.exists().where(identities.c.admin_id == _c.admin_id, identities.c.issuer == bindparam("issuer")),
        administrators.c.zone,
        administrators.c.shows_utc,
        administrators.c.theme,
        administrators.c.language,
    ).where(_IS_LIVE, _c.digest == bindparam("digest"))
)
_LIVE_OF_ADMIN = Statement(
    sa.select(*_COLUMNS).where(_c.admin_id == bindparam("admin"), _IS_CURRENT).order_by(_c.seen_at.desc(), _c.digest)
)
_LIVE_AMONG = Statement(
    sa.select(_c.digest, administrators.c.role, administrators.c.kinds).where(_IS_LIVE, TextIn(_c.digest, "digests"))
)


_EXISTS = Statement(sa.select(_c.digest).where(_c.digest == bindparam("digest")))


class LiveSession(NamedTuple):
    """A session with the facts about its administrator that every page needs."""

    session: Session
    name: str
    login: str
    must_change: bool
    has_passkey: bool
    has_app: bool
    role: str
    kinds: str | None
    has_password: bool
    has_identity: bool
    zone: str
    shows_utc: bool
    theme: str
    language: str


_FLAGS: Final = ("must_change", "has_passkey", "has_app", "has_password", "has_identity", "shows_utc")


def find_live(tx: Transaction, digest: str, limits: SessionLimits) -> LiveSession | None:
    """Read a session; None if it is not live, or if its administrator is disabled."""
    rows = tx.fetch(_LIVE, digest=digest, **limits._asdict())
    if not rows:
        return None
    own = len(_COLUMNS)
    found = LiveSession(Session(*rows[0][:own]), *rows[0][own:])
    flags: dict[str, Any] = {name: bool(getattr(found, name)) for name in _FLAGS}  # SQLite returns them as numbers
    return found._replace(**flags)


def find_live_among(tx: Transaction, digests: Sequence[str], limits: SessionLimits) -> list[tuple[str, str, str | None]]:
    """Return the sessions among `digests` that `find_live` would read: (digest, role, kinds that the role covers)."""
    found = tx.fetch(_LIVE_AMONG, digests=tx.id_list(list(digests)), **limits._asdict())
    return [(row[0], row[1], row[2]) for row in found]


def exists(tx: Transaction, digest: str) -> bool:
    """Return whether a session exists, which it does until it is ended or purged."""
    return bool(tx.fetch(_EXISTS, digest=digest))


def insert(tx: Transaction, session: Session) -> None:
    """Insert a session, and record that its administrator was seen."""
    tx.connection.execute(sa.insert(sessions).values(**asdict(session)))
    _record_last_seen(tx, session.admin_id, session.created_at)


def record_use(tx: Transaction, digest: str, at: str, address: str) -> None:
    """Record when and from which address a session was used."""
    row = tx.connection.execute(
        sa.update(sessions).where(_c.digest == digest).values(seen_at=at, address=address).returning(_c.admin_id)
    ).first()
    if row:
        _record_last_seen(tx, row[0], at)


def _record_last_seen(tx: Transaction, admin: int, at: str) -> None:
    tx.connection.execute(sa.update(administrators).where(administrators.c.id == admin).values(last_seen_at=at))


def confirm(tx: Transaction, digest: str, renewed: str, until: str, how: str | None) -> None:
    """Record that the administrator of a session has confirmed their identity, how, and until when; replace the digest."""
    changed = {"digest": renewed, "confirmed_until": until, "confirmed_with": how}
    tx.connection.execute(sa.update(sessions).where(_c.digest == digest).values(**changed))


def find_live_by_admin(tx: Transaction, admin: int, limits: SessionLimits) -> list[Session]:
    """Read the live sessions of an administrator, the most recently used first."""
    return [Session(*row) for row in tx.fetch(_LIVE_OF_ADMIN, admin=admin, **limits._asdict())]


def end(tx: Transaction, digests: Sequence[str]) -> None:
    """End some sessions."""
    tx.connection.execute(sa.delete(sessions).where(_c.digest.in_(digests)))


def end_all(tx: Transaction, admin: int, keep: str = "") -> int:
    """End all sessions of an administrator, except those whose digest begins with `keep`; return their number."""
    kept = _c.digest.startswith(keep, autoescape=True) if keep else sa.false()
    return tx.connection.execute(sa.delete(sessions).where(_c.admin_id == admin, ~kept)).rowcount


def end_of_issuer(tx: Transaction, admin: int, issuer: str) -> int:
    """End the sessions of an administrator that began at a provider; return their number."""
    return tx.connection.execute(sa.delete(sessions).where(_c.admin_id == admin, _c.issuer == issuer)).rowcount


def purge(tx: Transaction, now: str, ahead: str) -> int:
    """Delete the sessions that have expired or were used after `ahead`, and return their number."""
    return tx.connection.execute(sa.delete(sessions).where(sa.or_(_c.expires_at <= now, _c.seen_at > ahead))).rowcount
