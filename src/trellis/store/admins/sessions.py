"""The panel's sessions and the attempts to sign in: bookkeeping, which does not pass the gate."""

from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import administrators, sessions, sign_ins

_c = sessions.c


@dataclass(slots=True)
class Session:
    """A session of an administrator. `digest` is the SHA-256 of its cookie; `confirmed_until` is None or a moment."""

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


def live(tx: Transaction, digest: str, now: str, idle: str) -> tuple[Session, str, str] | None:
    """Read a session that has not expired and was seen after `idle`, with its administrator's name and login."""
    rows = tx.rows(_LIVE, digest=digest, now=now, idle=idle)
    if not rows:
        return None
    *own, name, login = rows[0]
    return Session(*own), name, login


def insert(tx: Transaction, session: Session) -> None:
    """Write a new session."""
    tx.connection.execute(sa.insert(sessions).values(**asdict(session)))
    _seen(tx, session.admin_id, session.created_at)


def touch(tx: Transaction, digest: str, at: str, address: str) -> None:
    """Record that a session was used."""
    row = tx.connection.execute(
        sa.update(sessions).where(_c.digest == digest).values(seen_at=at, address=address).returning(_c.admin_id)
    ).first()
    if row:
        _seen(tx, row[0], at)


def _seen(tx: Transaction, admin: int, at: str) -> None:
    tx.connection.execute(sa.update(administrators).where(administrators.c.id == admin).values(last_seen_at=at))


def confirm(tx: Transaction, digest: str, until: str) -> None:
    """Record that the password of a session was entered again."""
    tx.connection.execute(sa.update(sessions).where(_c.digest == digest).values(confirmed_until=until))


def of_admin(tx: Transaction, admin: int, now: str, idle: str) -> list[Session]:
    """Read the live sessions of an administrator, the one used last first."""
    statement = sa.select(*_COLUMNS).where(_c.admin_id == admin, _c.expires_at > now, _c.seen_at > idle)
    return [Session(*row) for row in tx.connection.execute(statement.order_by(_c.seen_at.desc(), _c.digest))]


def end(tx: Transaction, digest: str) -> None:
    """End one session."""
    tx.connection.execute(sa.delete(sessions).where(_c.digest == digest))


def end_of_admin(tx: Transaction, admin: int, *, but: str = "") -> int:
    """End all sessions of an administrator, but one; give their number."""
    return tx.connection.execute(sa.delete(sessions).where(_c.admin_id == admin, _c.digest != but)).rowcount


def purge(tx: Transaction, now: str) -> int:
    """Delete the sessions that have expired; return their number."""
    return tx.connection.execute(sa.delete(sessions).where(_c.expires_at <= now)).rowcount


# --- attempts to sign in ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Attempts:
    """Failed attempts of one subject (an account, an address, a known browser) and until when it has to wait."""

    subject: str
    failures: int
    at: str
    wait_until: str


def attempts_of(tx: Transaction, subjects: tuple[str, ...]) -> dict[str, Attempts]:
    """Read the attempts of some subjects."""
    columns = (sign_ins.c[f.name] for f in fields(Attempts))
    rows = tx.connection.execute(sa.select(*columns).where(sign_ins.c.subject.in_(subjects)))
    return {row[0]: Attempts(*row) for row in rows}


def keep_attempts(tx: Transaction, counted: Attempts) -> None:
    """Write the attempts of a subject, in place of what was kept."""
    values = asdict(counted)
    if tx.sqlite:
        from sqlalchemy.dialects.sqlite import insert  # noqa: PLC0415  # start-up time: the one dialect that is in use
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]  # noqa: PLC0415  # as above
    statement = insert(sign_ins).values(**values)
    tx.connection.execute(statement.on_conflict_do_update(index_elements=[sign_ins.c.subject], set_=values))


def purge_attempts(tx: Transaction, before: str) -> int:
    """Delete the attempts that are older than a moment; return how many subjects that were."""
    return tx.connection.execute(sa.delete(sign_ins).where(sign_ins.c.at < before)).rowcount
