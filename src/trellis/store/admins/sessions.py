"""The rows of the panel's sessions and of failed attempts to sign in: bookkeeping, which does not pass the gate."""

from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import administrators, sessions, sign_in_attempts

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


_COLUMNS = tuple(_c[f.name] for f in fields(Session))
_LIVE = Statement(
    sa.select(*_COLUMNS, administrators.c.name, administrators.c.login)
    .join(administrators, administrators.c.id == _c.admin_id)
    .where(
        _c.digest == bindparam("digest"),
        _c.expires_at > bindparam("now"),
        _c.seen_at > bindparam("idle"),
        administrators.c.disabled_at.is_(None),
    )
)


def find_live(tx: Transaction, digest: str, now: str, idle: str) -> tuple[Session, str, str] | None:
    """Read a session that has not expired and was seen after `idle`, with its administrator's name and login."""
    rows = tx.fetch(_LIVE, digest=digest, now=now, idle=idle)
    if not rows:
        return None
    *own, name, login = rows[0]
    return Session(*own), name, login


def insert(tx: Transaction, session: Session) -> None:
    """Insert a session, and delete those that have expired."""
    tx.connection.execute(sa.delete(sessions).where(_c.expires_at <= session.created_at))
    tx.connection.execute(sa.insert(sessions).values(**asdict(session)))
    _record_seen(tx, session.admin_id, session.created_at)


def record_use(tx: Transaction, digest: str, at: str, address: str) -> None:
    """Record when and from where a session was used."""
    row = tx.connection.execute(
        sa.update(sessions).where(_c.digest == digest).values(seen_at=at, address=address).returning(_c.admin_id)
    ).first()
    if row:
        _record_seen(tx, row[0], at)


def _record_seen(tx: Transaction, admin: int, at: str) -> None:
    tx.connection.execute(sa.update(administrators).where(administrators.c.id == admin).values(last_seen_at=at))


def confirm(tx: Transaction, digest: str, until: str) -> None:
    """Record that the password of a session was entered again."""
    tx.connection.execute(sa.update(sessions).where(_c.digest == digest).values(confirmed_until=until))


def find_live_by_admin(tx: Transaction, admin: int, now: str, idle: str) -> list[Session]:
    """Read the live sessions of an administrator, the most recently used first."""
    statement = sa.select(*_COLUMNS).where(_c.admin_id == admin, _c.expires_at > now, _c.seen_at > idle)
    return [Session(*row) for row in tx.connection.execute(statement.order_by(_c.seen_at.desc(), _c.digest))]


def end(tx: Transaction, digest: str) -> None:
    """End one session."""
    tx.connection.execute(sa.delete(sessions).where(_c.digest == digest))


def end_all(tx: Transaction, admin: int, *, but: str = "") -> int:
    """End all sessions of an administrator but one; return their number."""
    return tx.connection.execute(sa.delete(sessions).where(_c.admin_id == admin, _c.digest != but)).rowcount


# --- attempts to sign in ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Attempts:
    """Failed attempts of one subject (an account, an address, a known browser) and until when it has to wait."""

    subject: str
    failures: int
    at: str
    wait_until: str


def find_attempts(tx: Transaction, subjects: tuple[str, ...]) -> dict[str, Attempts]:
    """Read the failed attempts of some subjects; those without any are left out."""
    columns = (sign_in_attempts.c[f.name] for f in fields(Attempts))
    rows = tx.connection.execute(sa.select(*columns).where(sign_in_attempts.c.subject.in_(subjects)))
    return {row[0]: Attempts(*row) for row in rows}


def save_attempts(tx: Transaction, counted: Attempts) -> None:
    """Write the failed attempts of a subject, in place of those stored."""
    values = asdict(counted)
    if tx.sqlite:
        from sqlalchemy.dialects.sqlite import insert  # noqa: PLC0415  # start-up time: the one dialect that is in use
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]  # noqa: PLC0415  # as above
    statement = insert(sign_in_attempts).values(**values)
    tx.connection.execute(statement.on_conflict_do_update(index_elements=[sign_in_attempts.c.subject], set_=values))


def delete_attempts(tx: Transaction, before: str, prefix: str = "") -> None:
    """Delete the attempts of a kind of subject that are older than a timestamp."""
    tx.connection.execute(
        sa.delete(sign_in_attempts).where(
            sign_in_attempts.c.at < before, sign_in_attempts.c.subject.startswith(prefix, autoescape=True)
        )
    )
