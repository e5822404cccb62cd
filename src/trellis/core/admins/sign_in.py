"""Signing in: checking a login and a password, slowing down guesses, and reporting failed sign-ins.

Attempts are counted before the password is checked, so that sending many at once gains nothing. They are counted by account, and
by account and address. Each counter grants a few free attempts and then demands a wait that doubles up to a limit and expires by
itself. A browser that has signed in to an account before has only a counter of its own, so that a stranger's guesses do not slow
down the account's owner. An address by itself has no counter, because everybody behind a proxy has the same address. Logins that
do not exist are counted like all others, so that no wait reveals which logins exist.

The counters are bookkeeping. Failures are counted by address and minute, and an event reports each count once its minute is over.
"""

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from trellis.core.actor import Actor
from trellis.core.admins.passwords import LONGEST, password_matches, renew_digest
from trellis.core.admins.tokens import generate_token, hash_token
from trellis.core.factors import find_service_key, mark_password, sign
from trellis.core.fields import MAX_INTEGER, Field, Integer, Text, Type, shift_timestamp
from trellis.core.gate import Gate
from trellis.core.networks import find_network
from trellis.core.operation import Call, Context, Operation, Outcome
from trellis.core.passwords import PEOPLE, STRANGERS
from trellis.errors import Refused
from trellis.store.admins import Attempts, administrators, attempts
from trellis.store.engine import Transaction
from trellis.timestamps import CLOCKS_DIFFER, MOST_AHEAD

FORGOTTEN_AFTER: Final = timedelta(hours=24)  # when failures are forgotten, unless another one follows
REMEMBERED_FOR: Final = timedelta(days=90)  # how long a browser that has signed in is remembered
REMEMBERED_AHEAD: Final = timedelta(days=1)  # what is further ahead is forgotten: it comes from a clock that was ahead
_MOST_TOKENS: Final = 4  # in the cookie of a browser, each of 43 characters
_PREFIX: Final = 16  # characters of the hash of a login
_BETWEEN: Final = "."  # what separates these tokens


@dataclass(frozen=True, slots=True)
class _Limit:
    """How many attempts may fail before the first wait, and the longest wait, in seconds."""

    free: int
    longest: int

    def wait(self, failures: int) -> int:
        return 0 if failures < self.free else min(self.longest, 2 ** min(failures - self.free + 1, 20))


_ACCOUNT: Final = _Limit(5, 60)
_ADDRESS: Final = _Limit(5, 900)  # an address that tries one account
_BROWSER: Final = _Limit(5, 900)
_WRONG: Final = _Limit(10, 900)  # wrong links and failed sign-ons from an address
_LOGIN_SIZE: Final = 2  # bytes that are kept of the hash of a typed login: people type their password there, too
_SERVICE: Final = Actor("service", None, "sign-in", frozenset({"admins.refuse_sign_in"}))


@dataclass(frozen=True, slots=True)
class Credentials:
    """What was typed to sign in, and from which address. `browser` is the cookie of a browser that has signed in before."""

    login: str
    password: str = field(repr=False)
    address: str
    browser: str = field(default="", repr=False)


class Proven(NamedTuple):
    """The id of an administrator who has proved who they are, and the mark of the password that they entered; "" without one."""

    admin: int
    mark: str = ""


def find_lane(gate: Gate, credentials: Credentials) -> str:
    """Return the lane in which a password waits to be checked: that of a known browser, or else that of the address."""
    with gate.store.reading() as tx:
        known = find_browser(tx, credentials.login, credentials.browser, gate.now())
    return f"{PEOPLE}/{known}" if known else address_lane(credentials.address)


def find_lane_of_passkey(login: str, address: str) -> str:
    """Return the lane in which a passkey waits to be checked: that of its owner, or that of the address if it is not known here."""
    return f"{PEOPLE}/passkey/{login}" if login else address_lane(address)


def address_lane(address: str) -> str:
    """Return the lane of an unknown caller: that of the address, or of the /64 network of an IPv6 address."""
    return f"{STRANGERS}/{find_network(address)}"


def count_attempt(gate: Gate, credentials: Credentials) -> Future[int]:
    """Count an attempt. The future's result is 0, or how many seconds to wait if the attempt came too early to be checked."""
    now = gate.now()
    return gate.store.write(lambda tx: _count(tx, credentials, now), quiet=True)


def find_wait(gate: Gate, credentials: Credentials) -> int:
    """Return how many seconds to wait before an attempt, without counting one; 0 for none."""
    now = gate.now()
    with gate.store.reading() as tx:
        return _find_wait(_find_kept(tx, tuple(_limits(tx, credentials, now)), now), now)


def check_password(gate: Gate, credentials: Credentials) -> Proven | None:
    """Return the administrator with this login and password; None if there is none. Takes about 50 ms and 64 MiB.

    An outdated digest is replaced as well, because the password that a new one is made from is known only now.
    """
    with gate.store.reading() as tx:
        admin = administrators.find_by_login(tx, credentials.login)
    digest = admin.digest if admin is not None and admin.has_password and admin.disabled_at is None else None
    password = credentials.password[: LONGEST + 1]
    if not password_matches(digest, password) or admin is None or digest is None:
        return None
    kept = digest
    if (other := renew_digest(digest, password)) is not None:
        with suppress(Refused):  # then the digest is renewed at the next sign-in
            if not gate.store.write(lambda tx: administrators.renew_digest(tx, admin.id, digest, other), quiet=True).result():
                return check_password(gate, credentials)  # another sign-in or a new password has replaced the digest
            kept = other
    return Proven(admin.id, mark_password(admin.id, kept))


def clear_attempts(gate: Gate, credentials: Credentials) -> Future[None]:
    """Reset the counters after a correct password."""
    now = gate.now()

    def clear(tx: Transaction) -> None:
        for subject in attempts.find_attempts(tx, tuple(_limits(tx, credentials, now))):
            attempts.save_attempts(tx, Attempts(subject, 0, now, now))

    return gate.store.write(clear, quiet=True)


def count_failure(gate: Gate, credentials: Credentials) -> Future[None]:
    """Count a wrong password, for the event that reports this minute."""
    now = gate.now()
    return gate.store.write(lambda tx: _count_failure(tx, credentials, now), quiet=True)


def remember_browser(gate: Gate, login: str, browser: str) -> Future[str]:
    """Recognise a browser from now on. The future's result is its cookie.

    The browser is recognised by a token that was generated here for this login, because any other token that it brings along may
    be known to somebody else. The cookie contains the tokens of several logins, since administrators share browsers.
    """
    now = gate.now()

    def remember(tx: Transaction) -> str:
        known, cookie = find_browser(tx, login, browser, now), browser
        if not known:
            token = generate_token()
            known, cookie = _browser(token, login), _BETWEEN.join((token, *_split(browser))[:_MOST_TOKENS])
        attempts.save_attempts(tx, Attempts(known, 0, now, now))
        attempts.trim_browsers(tx, _browsers_of(login))
        return cookie

    return gate.store.write(remember, quiet=True)


def find_wait_of_address(tx: Transaction, what: str, address: str, now: str) -> int:
    """Return how many seconds an address has to wait after too many failures of one type, such as wrong links; 0 for none."""
    return _find_wait(_find_kept(tx, (_wrong_from(what, address),), now), now)


def count_wrong(tx: Transaction, what: str, address: str, now: str) -> None:
    """Count a failure from an address, such as a wrong one-time link, unless the address has to wait already."""
    subject = _wrong_from(what, address)
    kept = _find_kept(tx, (subject,), now)
    if not _find_wait(kept, now):
        _save_failure(tx, subject, _WRONG, kept.get(subject), now)
        attempts.trim_attempts(tx, keep=attempts.BROWSER)


def _wrong_from(what: str, address: str) -> str:
    return f"{what}/{find_network(address)}"


def find_browser(tx: Transaction, login: str, browser: str, now: str) -> str:
    """Return the counter of the browser that has this cookie, or "" if nobody has recently signed in with this login in it."""
    subjects = tuple(_browser(token, login) for token in _split(browser))
    since, ahead = shift_timestamp(now, -REMEMBERED_FOR), shift_timestamp(now, REMEMBERED_AHEAD)
    kept = attempts.find_attempts(tx, subjects) if subjects else {}
    return next((subject for subject in subjects if subject in kept and since < kept[subject].at <= ahead), "")


def _split(browser: str) -> list[str]:
    """Return the tokens in a browser's cookie."""
    return [token for token in browser.split(_BETWEEN) if token][:_MOST_TOKENS]


def _count(tx: Transaction, credentials: Credentials, now: str) -> int:
    limits = _limits(tx, credentials, now)
    kept = _find_kept(tx, tuple(limits), now)
    if wait := _find_wait(kept, now):
        _count_failure(tx, credentials, now)
        return wait
    for subject, limit in limits.items():
        _save_failure(tx, subject, limit, kept.get(subject), now)
    attempts.trim_attempts(tx, keep=attempts.BROWSER)
    return 0


def _save_failure(tx: Transaction, subject: str, limit: _Limit, old: Attempts | None, now: str) -> None:
    """Count one more failure of a subject, and store until when it has to wait."""
    failures = (old.failures if old and old.at > shift_timestamp(now, -FORGOTTEN_AFTER) else 0) + 1
    until = shift_timestamp(now, timedelta(seconds=limit.wait(failures)))
    attempts.save_attempts(tx, Attempts(subject, failures, now, until))


def _find_kept(tx: Transaction, subjects: tuple[str, ...], now: str) -> dict[str, Attempts]:
    ahead = shift_timestamp(now, CLOCKS_DIFFER)  # later times are from a clock that was set back
    return {subject: one for subject, one in attempts.find_attempts(tx, subjects).items() if one.at <= ahead}


def _find_wait(kept: dict[str, Attempts], now: str) -> int:
    until = max((one.wait_until for one in kept.values()), default="")
    return int((datetime.fromisoformat(until) - datetime.fromisoformat(now)).total_seconds()) + 1 if until > now else 0


def _limits(tx: Transaction, credentials: Credentials, now: str) -> dict[str, _Limit]:
    """Return the counters that an attempt is checked against, each with its limit."""
    if known := find_browser(tx, credentials.login, credentials.browser, now):
        return {known: _BROWSER}
    login = administrators.fold_login(credentials.login)
    account = sign(find_service_key(tx), "login", login)[:_LOGIN_SIZE].hex()  # the login may not exist: a wait does not reveal it
    return {f"account/{account}": _ACCOUNT, f"account/{account}/{find_network(credentials.address)}": _ADDRESS}


def _browser(token: str, login: str) -> str:
    return _browsers_of(login) + hash_token(token + "/" + administrators.fold_login(login))


def _browsers_of(login: str) -> str:
    """Return the prefix of the counters of all browsers that are known for a login."""
    return f"{attempts.BROWSER}{hash_token(administrators.fold_login(login))[:_PREFIX]}/"


# --- the events of failed sign-ins ---------------------------------------------------------------------------------

MINUTE: Final = 16  # characters of a timestamp up to its minute


@dataclass(frozen=True, slots=True)
class _CountedAddress(Type):
    """An address as failures were counted by it. Earlier releases counted whatever a proxy passed on in place of an address."""

    def parse(self, raw: Any) -> str:
        return str(raw)

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


_FAILED: Final = (
    Field("minute", Text(MINUTE, MINUTE), "The minute, such as 2026-01-31T09:30 (UTC).", required=True),
    Field("address", _CountedAddress(), "The address that the sign-in comes from.", required=True),
)


def operation() -> Operation:
    """Return the operation that reports the sign-ins that failed in a minute."""
    return Operation(
        "admins.refuse_sign_in",
        "Report failed sign-ins",
        "Done by the service itself after each minute, for each address from which sign-ins failed.",
        _tell_failed,
        (
            *_FAILED,
            Field(
                "administrator",
                Integer(0, MAX_INTEGER),
                "The administrator whose account it was; 0 for a login that does not exist.",
                default=0,
            ),
        ),
        writes=True,
    )


def find_failed_sign_ins(gate: Gate) -> list[Call]:
    """Return the calls that report the sign-ins that failed in minutes that are over: at most 21 for each minute."""
    with gate.store.reading() as tx:
        now = gate.now()
        found = attempts.find_failed(tx, now[:MINUTE], shift_timestamp(now, MOST_AHEAD)[:MINUTE])
        raws = [{"minute": one.minute, "address": one.address, "administrator": one.admin_id} for one in found]
    return [Call("admins.refuse_sign_in", _SERVICE, raw) for raw in raws]


def _tell_failed(context: Context) -> Outcome:
    given = context.input
    minute, address, admin = given.get("minute"), given.get("address"), given.get("administrator", 0)
    count = attempts.take_failed(context.tx, minute, address, admin)
    after = {"address": find_network(address), "minute": minute, "attempts": count}
    return Outcome(after, admin or None, after=after, happened=count > 0)


def _count_failure(tx: Transaction, credentials: Credentials, now: str) -> None:
    admin = administrators.find_by_login(tx, credentials.login)
    attempts.count_failed(tx, now[:MINUTE], find_network(credentials.address), admin.id if admin else 0)
