"""Sessions of administrators. They are bookkeeping: they do not pass the gate, and leave no events.

A session's cookie holds 256 random bits. The database keeps only their SHA-256, so that signing out, disabling and a new
password take effect everywhere with the next request. A session ends after 8 hours without a request, and after 7 days at most.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from trellis.core.actor import Actor
from trellis.core.admins.tokens import generate_token, hash_token
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Context, Operation, Outcome
from trellis.store.admins import Session, sessions
from trellis.store.engine import Transaction

_IDLE: Final = timedelta(hours=8)
_LIFETIME: Final = timedelta(days=7)
_CONFIRMED: Final = timedelta(minutes=15)  # for how long an entered password counts as recent
_RECORD_AFTER: Final = timedelta(minutes=1)
_ID_LENGTH: Final = 16  # characters of its digest by which an administrator's session is named


@dataclass(frozen=True, slots=True)
class SignedIn:
    """An administrator with a live session. `use_is_recorded` says that its last use was recorded less than a minute ago."""

    id: int
    name: str
    login: str
    session: str
    confirmed_until: str | None
    use_is_recorded: bool

    @property
    def session_id(self) -> str:
        """The id of the session, as `admins.sessions` lists it."""
        return self.session[:_ID_LENGTH]

    @property
    def actor(self) -> Actor:
        """The administrator as events name them."""
        return Actor("admin", self.id, self.name)

    def has_confirmed(self, now: str) -> bool:
        """Return whether the password was entered in the last quarter of an hour."""
        return bool(self.confirmed_until and self.confirmed_until > now)


def find_session(gate: Gate, token: str) -> SignedIn | None:
    """Find the live session of a cookie."""
    with gate.store.reading() as tx:
        row = sessions.find_live(tx, hash_token(token), gate.now(), gate.ago(_IDLE))
    if row is None:
        return None
    session, name, login = row
    recorded = session.seen_at >= gate.ago(_RECORD_AFTER)
    return SignedIn(session.admin_id, name, login, session.digest, session.confirmed_until, recorded)


def record_session_use(gate: Gate, session: str, address: str) -> Future[None]:
    """Record that a session was used, and from which address."""
    now = gate.now()
    return gate.store.write(lambda tx: sessions.record_use(tx, session, now, address), quiet=True)


def begin_session(gate: Gate, admin: int, address: str, agent: str) -> Future[str]:
    """Begin a session whose password was just entered; the future gives its cookie."""
    token, now = generate_token(), gate.now()
    at = datetime.fromisoformat(now)
    session = Session(
        digest=hash_token(token),
        admin_id=admin,
        created_at=now,
        seen_at=now,
        expires_at=format_timestamp(at + _LIFETIME),
        confirmed_until=format_timestamp(at + _CONFIRMED),
        address=address,
        agent=agent[:300],
    )

    def insert(tx: Transaction) -> str:
        sessions.insert(tx, session)
        return token

    return gate.store.write(insert, quiet=True)


def confirm_session(gate: Gate, session: str) -> Future[None]:
    """Record that the password of a session was entered again."""
    until = format_timestamp(datetime.fromisoformat(gate.now()) + _CONFIRMED)
    return gate.store.write(lambda tx: sessions.confirm(tx, session, until), quiet=True)


def end_session(gate: Gate, session: str) -> Future[None]:
    """End a session."""
    return gate.store.write(lambda tx: sessions.end(tx, session), quiet=True)


def end_session_of(gate: Gate, admin: int, session_id: str) -> Future[bool]:
    """End one of an administrator's sessions, by its id; the future says whether it was live."""
    now, idle = gate.now(), gate.ago(_IDLE)

    def end(tx: Transaction) -> bool:
        live = [one for one in sessions.find_live_by_admin(tx, admin, now, idle) if one.digest[:_ID_LENGTH] == session_id]
        for session in live:
            sessions.end(tx, session.digest)
        return bool(live)

    return gate.store.write(end, quiet=True)


def end_other_sessions(gate: Gate, me: SignedIn) -> Future[int]:
    """End all sessions of an administrator but this one; the future gives their number."""
    return gate.store.write(lambda tx: sessions.end_all(tx, me.id, but=me.session), quiet=True)


def operation() -> Operation:
    """Return the operation that lists the sessions of an administrator."""
    return Operation(
        "admins.sessions",
        "List an administrator's sessions",
        "The live sessions of an administrator, the one used last first.",
        _list,
        has_target=True,
    )


def _list(context: Context) -> Outcome:
    context.input.demand()
    idle = format_timestamp(datetime.fromisoformat(context.now) - _IDLE)
    live = sessions.find_live_by_admin(context.tx, context.call.target or 0, context.now, idle)
    return Outcome(
        [
            {
                "id": session.digest[:_ID_LENGTH],
                "address": session.address,
                "agent": session.agent,
                "createdAt": session.created_at,
                "lastSeenAt": session.seen_at,
            }
            for session in live
        ]
    )
