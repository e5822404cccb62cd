"""The rows of the panel's sessions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, TextIn, Transaction
from trellis.store.tables import administrators, authenticators, passkeys, sessions

_c = sessions.c


@dataclass(slots=True)
class Session:
    """A session of an administrator. `digest` is the SHA-256 of its cookie; `confirmed_until` is None or a timestamp."""

    digest: str
    admin_id: int
    created_at: str
    seen_at: str
    expires_at: str
    confirmed_until: str | None
    address: str
    agent: str
    confirmed_with: str | None = None


_COLUMNS = tuple(_c[f.name] for f in fields(Session))
_IS_CURRENT = sa.and_(_c.expires_at > bindparam("now"), _c.seen_at > bindparam("idle"))
_IS_LIVE = sa.and_(_IS_CURRENT, administrators.c.id == _c.admin_id, administrators.c.disabled_at.is_(None))
_LIVE = Statement(
    sa.select(
        *_COLUMNS,
        administrators.c.name,
        administrators.c.login,
        administrators.c.must_change,
        *(sa.exists().where(table.c.admin_id == _c.admin_id) for table in (passkeys, authenticators)),
        administrators.c.role,
        administrators.c.kinds,
    ).where(_IS_LIVE, _c.digest == bindparam("digest"))
)
_LIVE_OF_ADMIN = Statement(
    sa.select(*_COLUMNS).where(_c.admin_id == bindparam("admin"), _IS_CURRENT).order_by(_c.seen_at.desc(), _c.digest)
)
_LIVE_AMONG = Statement(
    sa.select(_c.digest, administrators.c.role, administrators.c.kinds).where(_IS_LIVE, TextIn(_c.digest, "digests"))
)


class LiveSession(NamedTuple):
    """A session with its administrator's name, login, role, whether their password must be changed, and which factors they have."""

    session: Session
    name: str
    login: str
    must_change: bool
    has_passkey: bool
    has_app: bool
    role: str
    kinds: str | None


def find_live(tx: Transaction, digest: str, now: str, idle: str) -> LiveSession | None:
    """Read a session that has not expired and was seen after `idle`."""
    rows = tx.fetch(_LIVE, digest=digest, now=now, idle=idle)
    if not rows:
        return None
    *own, name, login, must_change, has_passkey, has_app, role, kinds = rows[0]
    return LiveSession(Session(*own), name, login, bool(must_change), bool(has_passkey), bool(has_app), role, kinds)


def find_live_among(tx: Transaction, digests: Sequence[str], now: str, idle: str) -> list[tuple[str, str, str | None]]:
    """Return which of some sessions have not expired and were seen after `idle`, each with its role and the kinds of that."""
    return [(row[0], row[1], row[2]) for row in tx.fetch(_LIVE_AMONG, digests=tx.id_list(list(digests)), now=now, idle=idle)]


def insert(tx: Transaction, session: Session) -> None:
    """Insert a session."""
    tx.connection.execute(sa.insert(sessions).values(**asdict(session)))
    _record_last_seen(tx, session.admin_id, session.created_at)


def record_use(tx: Transaction, digest: str, at: str, address: str) -> None:
    """Record when and from where a session was used."""
    row = tx.connection.execute(
        sa.update(sessions).where(_c.digest == digest).values(seen_at=at, address=address).returning(_c.admin_id)
    ).first()
    if row:
        _record_last_seen(tx, row[0], at)


def _record_last_seen(tx: Transaction, admin: int, at: str) -> None:
    tx.connection.execute(sa.update(administrators).where(administrators.c.id == admin).values(last_seen_at=at))


def confirm(tx: Transaction, digest: str, renewed: str, until: str, how: str) -> None:
    """Record that the password of a session was entered again, and with what, and give it another digest."""
    changed = {"digest": renewed, "confirmed_until": until, "confirmed_with": how}
    tx.connection.execute(sa.update(sessions).where(_c.digest == digest).values(**changed))


def find_live_by_admin(tx: Transaction, admin: int, now: str, idle: str) -> list[Session]:
    """Read the live sessions of an administrator, the most recently used first."""
    return [Session(*row) for row in tx.fetch(_LIVE_OF_ADMIN, admin=admin, now=now, idle=idle)]


def end(tx: Transaction, digests: Sequence[str]) -> None:
    """End some sessions."""
    tx.connection.execute(sa.delete(sessions).where(_c.digest.in_(digests)))


def end_all(tx: Transaction, admin: int, keep: str = "") -> int:
    """End all sessions of an administrator, but for one whose digest begins with `keep`; return their number."""
    kept = _c.digest.startswith(keep, autoescape=True) if keep else sa.false()
    return tx.connection.execute(sa.delete(sessions).where(_c.admin_id == admin, ~kept)).rowcount


def purge(tx: Transaction, now: str) -> int:
    """Delete the sessions that have expired; return their number."""
    return tx.connection.execute(sa.delete(sessions).where(_c.expires_at <= now)).rowcount
