"""The outbox of mail, with one row for each mail. After sending, the row remains for a while as a record of the result."""

from dataclasses import asdict, dataclass, fields
from typing import Final, Literal, get_args

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import mails

_c = mails.c
_BATCH: Final = 1000
Notice = Literal["changed-address", "fewer-alarms"]
Kind = Literal["alarms", "invitation"] | Notice
_NOTICES: Final = get_args(Notice)


@dataclass(slots=True)
class Mail:
    """A mail. It reports the alarms of the events after `first` up to `last`, if these are set."""

    id: int
    kind: Kind
    admin_id: int
    recipient: str | None
    first: int | None
    last: int | None
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    due_at: str
    created_at: str
    attempted_at: str | None = None
    error: str | None = None


_COLUMNS = tuple(_c[field.name] for field in fields(Mail))
_DUE = Statement(
    sa.select(*_COLUMNS)
    .where(
        _c.state == "waiting",
        _c.kind != sa.bindparam("other"),
        # The first attempt is due at once. One in the future was made before the clock was set back, so the wait after it is over.
        sa.or_(_c.attempted_at.is_(None), _c.due_at <= sa.bindparam("now"), _c.attempted_at > sa.bindparam("ahead")),
    )
    .order_by(_c.due_at, _c.id)
    .limit(1)
)
_CLAIM = Statement(
    sa.update(mails)
    .where(_c.id == sa.bindparam("mail"))
    .values(attempts=_c.attempts + 1, attempted_at=sa.bindparam("now"), due_at=sa.bindparam("due"))
)
_SETTLE = Statement(  # also by the time, since SQLite may have given the id of a withdrawn invitation to another mail
    sa.update(mails)
    .where(
        _c.id == sa.bindparam("mail"),
        _c.created_at == sa.bindparam("made"),
        _c.state == "waiting",
        _c.attempts == sa.bindparam("seen"),
    )
    .values(state=sa.bindparam("new_state"), error=sa.bindparam("why"))
)


def insert(
    tx: Transaction, kind: Kind, admin: int, at: str, recipient: str | None = None, span: tuple[int, int] | None = None
) -> None:
    """Insert a mail that is due at once. It reports the alarms of the events after the first of `span` up to the second."""
    first, last = span or (None, None)
    fresh = Mail(0, kind, admin, recipient, first, last, "waiting", 0, due_at=at, created_at=at)
    values = {name: value for name, value in asdict(fresh).items() if name != "id"}
    tx.connection.execute(sa.insert(mails).values(**values))


def find_due(tx: Transaction, now: str, ahead: str, *, invitations: bool = True) -> Mail | None:
    """Read the mail that has been due for the longest time, which may be one of the `invitations` or not.

    The time of an attempt after `ahead` is wrong, so its mail is due.
    """
    rows = tx.fetch(_DUE, now=now, ahead=ahead, other="" if invitations else "invitation")
    return Mail(*rows[0]) if rows else None


def claim(tx: Transaction, mail: Mail, now: str, due: str) -> None:
    """Begin an attempt to send a mail that was found in this transaction.

    If this process ends before it records the result, the mail is due again at `due`.
    """
    tx.execute(_CLAIM, mail=mail.id, now=now, due=due)


def settle(tx: Transaction, mail: Mail, state: str, why: str | None = None) -> None:
    """Record the result of an attempt: `mail.attempts` must include it. Nothing is recorded if another attempt has begun since."""
    tx.execute(_SETTLE, mail=mail.id, made=mail.created_at, seen=mail.attempts, new_state=state, why=why)


def is_alarm_mail_pending(tx: Transaction, admin: int, since: str, now: str) -> bool:
    """Return whether a mail with alarms to an administrator is waiting, or was created after `since`."""
    lately = sa.and_(_c.created_at > since, _c.created_at <= now)
    pending = sa.select(_c.id).where(_c.kind == "alarms", _c.admin_id == admin, sa.or_(_c.state == "waiting", lately)).limit(1)
    return tx.connection.execute(pending).first() is not None


def count_notices(tx: Transaction, admin: int, since: str, now: str) -> int:
    """Count the notices about the mail of an administrator that were created after `since` and not after `now`."""
    return tx.count(mails, _c.admin_id == admin, _c.kind.in_(_NOTICES), _c.created_at > since, _c.created_at <= now)


def drop_invitation(tx: Transaction, admin: int) -> None:
    """Delete waiting invitations to an administrator."""
    tx.connection.execute(sa.delete(mails).where(_c.admin_id == admin, _c.kind == "invitation", _c.state == "waiting"))


def find_last(tx: Transaction, admin: int) -> Mail | None:
    """Read the newest mail to an administrator."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.admin_id == admin).order_by(_c.id.desc()).limit(1)).first()
    return Mail(*row) if row else None


def count_waiting(tx: Transaction) -> int:
    """Count the waiting mails."""
    return tx.count(mails, _c.state == "waiting")


def purge(tx: Transaction, before: str) -> int:
    """Delete up to 1,000 mails that are no longer waiting and are older than a timestamp; return their number."""
    old = sa.select(_c.id).where(_c.state != "waiting", _c.created_at < before).limit(_BATCH)
    return tx.connection.execute(sa.delete(mails).where(_c.id.in_(old))).rowcount
