"""Sessions of administrators. Signing in, confirming and signing out are operations; recording a use is bookkeeping.

A session's cookie contains 256 random bits. Sessions are stored in the database, with only the SHA-256 of the cookie, so that
signing out, disabling and a new password take effect everywhere with the next request. A session ends after 8 hours without a
request, and at the latest after 7 days, or after 12 hours if it began at the provider. A session that began when the clock was
ahead ends when the clock is put right.
"""

from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.admins.roles import require_local_sign_in
from trellis.core.admins.sign_in import find_browser
from trellis.core.admins.tokens import generate_token, hash_token
from trellis.core.factors import EVIDENCE, mark_password, take_factor
from trellis.core.fields import Boolean, Field, Text, TextList, invalid_id, require, require_found, shift_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Context, Environment, Operation, Outcome, targeted_write
from trellis.core.roles import Permit
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.admins import Administrator, Session, administrators, sessions
from trellis.store.engine import Transaction
from trellis.timestamps import MOST_AHEAD

_IDLE: Final = timedelta(hours=8)
_LIFETIME: Final = timedelta(days=7)
_SIGN_ON_LIFETIME: Final = timedelta(hours=12)  # so that the provider is asked for the groups again the next day
_CONFIRMED: Final = timedelta(minutes=15)  # how long a confirmation counts as recent
_RECORD_AFTER: Final = timedelta(minutes=1)
SET_BY_ANOTHER: Final = say(
    "Somebody else set this password. Sign in with your login and password, then with your passkey, and choose a new password."
)
_BY_PASSWORD, _BY_PASSKEY = "password", "passkey"  # how a session was confirmed
BY_SIGN_ON, BY_PROVIDERS_FACTOR = "sso", "mfa"
_ID_LENGTH: Final = 16  # characters of a session's digest, which are its id


@dataclass(frozen=True, slots=True)
class SignedIn:
    """An administrator with a live session. `use_is_recorded`: a use of the session was recorded less than a minute ago."""

    id: int
    name: str
    login: str
    session: str
    confirmed_until: str | None
    use_is_recorded: bool
    must_change_password: bool = False
    has_passkey: bool = False
    has_app: bool = False
    must_add_factor: bool = False
    permit: Permit | None = None  # None for an owner
    has_password: bool = True
    has_identity: bool = False  # at the provider
    issuer: str | None = None  # the provider where the session began, if it began with single sign-on
    zone: str = ""  # the time zone that they have chosen; "" means that of their browser
    shows_utc: bool = False
    theme: str = ""  # "" means that of the system
    language: str = ""  # "" means that of their browser

    @property
    def has_factor(self) -> bool:
        """Whether the administrator has a second factor, which is required with the password."""
        return self.has_passkey or self.has_app

    @property
    def session_id(self) -> str:
        """The id of the session, as `admins.sessions` lists it."""
        return self.session[:_ID_LENGTH]

    @property
    def actor(self) -> Actor:
        """The administrator as the actor that events name."""
        return Actor.administrator(self.id, self.name, self.permit, self.session)

    def has_confirmed(self, now: str) -> bool:
        """Return whether the administrator has signed in, or confirmed who they are, in the last quarter of an hour."""
        return bool(self.confirmed_until and self.confirmed_until > now)


def find_session(gate: Gate, token: str) -> SignedIn | None:
    """Return the administrator with the live session that a cookie belongs to; None if there is none."""
    with gate.store.reading() as tx:
        row = sessions.find_live(tx, hash_token(token), _find_limits(gate.now(), gate.environment))
    if row is None:
        return None
    session = row.session
    has_factor = row.has_passkey or row.has_app or BY_PROVIDERS_FACTOR in (session.confirmed_with or "").split(",")
    return SignedIn(
        session.admin_id,
        row.name,
        row.login,
        session.digest,
        session.confirmed_until,
        use_is_recorded=session.seen_at >= gate.ago(_RECORD_AFTER),
        must_change_password=row.must_change and session.issuer is None,
        has_passkey=row.has_passkey,
        has_app=row.has_app,
        must_add_factor=gate.environment.second_factors.required and not has_factor,
        permit=gate.environment.permits.find(row.role, row.kinds),
        has_password=row.has_password,
        has_identity=row.has_identity,
        issuer=session.issuer,
        zone=row.zone,
        shows_utc=row.shows_utc,
        theme=row.theme,
        language=row.language,
    )


def _find_limits(now: str, environment: Environment) -> sessions.SessionLimits:
    idle, ahead = shift_timestamp(now, -_IDLE), shift_timestamp(now, MOST_AHEAD)
    return sessions.SessionLimits(now, idle, ahead, environment.sign_on.issuer)


def find_live_sessions(gate: Gate, among: Collection[str]) -> dict[str, Permit | None]:
    """Return the live ones among some sessions, each with its administrator's permit. `SignedIn.session` is a session's name."""
    with gate.store.reading() as tx:
        found = sessions.find_live_among(tx, list(among), _find_limits(gate.now(), gate.environment))
    return {digest: gate.environment.permits.find(role, kinds) for digest, role, kinds in found}


def record_session_use(gate: Gate, session: str, address: str) -> Future[None]:
    """Record that a session was used, and from which address."""
    now = gate.now()
    return gate.store.write(lambda tx: sessions.record_use(tx, session, now, address), quiet=True)


def insert_session(tx: Transaction, admin: int, address: str, agent: str, now: str, how: str, issuer: str | None = None) -> str:
    """Insert a session for somebody who has just proved who they are; return the secret of its cookie."""
    token = generate_token()
    session = Session(
        digest=hash_token(token),
        admin_id=admin,
        created_at=now,
        seen_at=now,
        expires_at=shift_timestamp(now, _LIFETIME if issuer is None else _SIGN_ON_LIFETIME),
        confirmed_until=shift_timestamp(now, _CONFIRMED),
        address=address,
        agent=agent[:300],
        confirmed_with=how,
        issuer=issuer,
    )
    sessions.insert(tx, session)
    return token


# --- the operations -----------------------------------------------------------------------------------------------

ADDRESS: Final = Field("address", Text(100), "The address that the sign-in comes from.", default="")
AGENT: Final = Field("agent", Text(300), "The browser that the sign-in comes from.", default="")
_ALONE: Final = Field(
    "alone", Boolean(), "Whether a passkey is used instead of the password, which was not entered.", default=False
)
_MARK: Final = Field(
    "passwordMark",
    Text(64),
    "A digest that identifies the password that was entered; the sign-in is refused if the password has changed since.",
    default="",
)
BROWSER: Final = Field(
    "browser",
    Text(200),
    "The token that the browser received at an earlier sign-in, by which it is recognised.",
    default="",
)
SESSION: Final = Field("session", Text(_ID_LENGTH), "The id of the session.", required=True)
GOES_ON: Final = Field(
    "session",
    Text(_ID_LENGTH),
    "The id of the caller's own session, which continues; the secret of its new cookie is returned, once.",
    default="",
)
_SESSIONS: Final = Field("sessions", TextList(), "The ids of the sessions to end.", default=())
_SOME: Final = replace(_SESSIONS, required=True)  # unless all sessions are to end
_EVERYWHERE: Final = Field("everywhere", Boolean(), "Whether to end all sessions.", default=False)
_BUT: Final = Field("but", Text(_ID_LENGTH), "The id of a session to keep.", default="")


def operations() -> tuple[Operation, ...]:
    """Return the operations on the sessions of an administrator. The panel checks passwords before it runs them."""
    return (
        Operation(
            "admins.sessions",
            "List an administrator's sessions",
            "Returns the active sessions of an administrator, the most recently used first.",
            _list,
            has_target=True,
        ),
        targeted_write(
            "admins.sign_in",
            "Sign an administrator in",
            "Starts a session and returns the secret of its cookie, once. Administrators with a second factor must provide it. A "
            "passkey alone is enough, unless somebody else has set the password. The event says `newBrowser` if the "
            "administrator has not signed in with this browser for 90 days.",
            _sign_in,
            (ADDRESS, AGENT, BROWSER, _ALONE, _MARK, *EVIDENCE),
        ),
        targeted_write(
            "admins.confirm_password",
            "Confirm an administrator's password",
            "Records that the password was entered again in a session, and returns the secret of its new cookie, once. The old "
            "cookie stops working, in case somebody else has it. Administrators with a second factor must provide it.",
            _confirm_password,
            (SESSION, ADDRESS, AGENT, *EVIDENCE),
        ),
        targeted_write(
            "admins.sign_out",
            "Sign an administrator out",
            "Ends some or all of an administrator's current sessions.",
            _sign_out,
            (_SESSIONS, _EVERYWHERE, _BUT),
            judges_input=True,
        ),
    )


def _serialize(session: Session) -> dict[str, Any]:
    return {
        "id": session.digest[:_ID_LENGTH],
        "address": session.address,
        "agent": session.agent,
        "createdAt": session.created_at,
        "lastSeenAt": session.seen_at,
        "confirmedWith": session.confirmed_with.split(",") if session.confirmed_with else [],
    }


def _find_live(context: Context) -> list[Session]:
    return sessions.find_live_by_admin(context.tx, context.call.target or 0, _find_limits(context.now, context.environment))


def _list(context: Context) -> Outcome:
    return Outcome([_serialize(session) for session in _find_live(context)])


def _sign_in(context: Context) -> Outcome:
    admin = administrators.find(context.tx, context.call.target or 0)
    if admin is None or admin.disabled_at is not None:
        raise invalid_id(say("administrator who may sign in"), context.call.target, "1T106/9")
    if (mark := context.input.get(_MARK.name)) and mark != mark_password(admin.id, admin.digest):
        raise Refused("NO_PERMISSION", say("The password was changed meanwhile. Sign in with the new one."))
    factor, alone = take_factor(context, admin.id), bool(context.input.get(_ALONE.name))
    if admin.must_change and alone:  # the passkey may belong to whoever the new password is to shut out
        raise Refused("NO_PERMISSION", SET_BY_ANOTHER)
    if not admin.has_password:  # then a passkey is accepted only after signing in at the provider
        raise Refused(
            "LOCAL_SIGN_IN_OFF", say("You have no password here. Sign in at the provider, and choose one under Your account.")
        )
    require_local_sign_in(context, admin)
    return start_session(context, admin, describe_client(context, factor), _list_shown(factor, alone=alone))


def start_session(context: Context, admin: Administrator, sign_in: dict[str, str], how: str, issuer: str | None = None) -> Outcome:
    """Start a session for an administrator who has just proved who they are. `sign_in` describes the sign-in, for its event."""
    is_known = find_browser(context.tx, admin.login, context.input.get(BROWSER.name, ""), context.now)
    after: dict[str, Any] = sign_in if is_known else {**sign_in, "newBrowser": True}
    token = insert_session(context.tx, admin.id, sign_in["address"], sign_in["agent"], context.now, how, issuer)
    return Outcome({**after, "token": token}, admin.id, after=after, public=after)


def _confirm_password(context: Context) -> Outcome:
    session = find_own_session(context)
    factor = take_factor(context, session.admin_id)
    how = _list_shown(factor, alone=factor == _BY_PASSKEY)  # with a passkey, the panel does not ask for the password
    if BY_PROVIDERS_FACTOR in (session.confirmed_with or "").split(","):
        how = f"{how},{BY_PROVIDERS_FACTOR}"  # which counts for as long as the session
    return confirm_session(context, session, describe_client(context, factor), how)


def find_own_session(context: Context) -> Session:
    """Return the session that a call names, which must be a live one of its target. Raises Refused (INVALID_ID)."""
    wanted = context.input.get("session")
    session = next((one for one in _find_live(context) if one.digest[:_ID_LENGTH] == wanted), None)
    return require_found(session, say("session"), wanted, "1T106/6")


def confirm_session(context: Context, session: Session, after: dict[str, Any], how: str) -> Outcome:
    """Record that the owner of a session has proved again who they are, and give the session a new cookie."""
    return Outcome({**after, "token": renew_session(context, session, how)}, context.call.target, after=after, public=after)


def renew_session(context: Context, session: Session, how: str | None) -> str:
    """Give a session of somebody who has just proved who they are a new cookie; return its secret."""
    token = generate_token()
    until = shift_timestamp(context.now, _CONFIRMED)
    sessions.confirm(context.tx, session.digest, hash_token(token), until, how)
    return token


def describe_client(context: Context, factor: str) -> dict[str, str]:
    """Describe a sign-in for its event: the address, the browser and, if there is one, the second factor."""
    sign_in = {name: context.input.get(name, "") for name in ("address", "agent")}
    return {**sign_in, "secondFactor": factor} if factor else sign_in


def _list_shown(factor: str, *, alone: bool) -> str:
    """Return what somebody has signed in with, as a session stores it."""
    return factor if alone else ",".join(filter(None, (_BY_PASSWORD, factor)))


def _sign_out(context: Context) -> Outcome:
    given = context.input if context.input.get(_EVERYWHERE.name) else require((_SOME,), context.input)
    given.raise_faults()
    if given.get(_EVERYWHERE.name):
        but = given.get(_BUT.name, _BUT.default)
        ended = [session for session in _find_live(context) if session.digest[:_ID_LENGTH] != but]
        # All, not only those that are live: others may seem to have ended only because the clock is ahead.
        gone = sessions.end_all(context.tx, context.call.target or 0, keep=but)
    else:
        ended = [session for session in _find_live(context) if session.digest[:_ID_LENGTH] in given.get("sessions")]
        sessions.end(context.tx, [session.digest for session in ended])
        gone = len(ended)
    before = {"sessions": [f"{session.address} {session.agent}".strip() for session in ended]}
    return Outcome({"ended": len(ended)}, context.call.target, before=before, happened=gone > 0)
