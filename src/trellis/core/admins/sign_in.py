"""Signing in: checking a login and a password, and slowing down guesses. This is bookkeeping too: it does not pass the gate.

Attempts are counted before the password is checked, so that many at once gain nothing: by account, and by address. Each counter
grants a few free attempts and then demands a wait that doubles up to a bound and expires by itself. A browser that has signed in
to an account before has a counter of its own, so that a stranger's guesses do not slow down the account's owner.
"""

from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Final

from trellis.core.admins.passwords import LONGEST, password_matches
from trellis.core.admins.tokens import generate_token, hash_token
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.store.admins import Attempts, administrators, sessions
from trellis.store.engine import Transaction

_FORGET_AFTER: Final = timedelta(hours=24)  # failures, if no other one follows
_REMEMBER_FOR: Final = timedelta(days=90)  # browsers that have signed in


@dataclass(frozen=True, slots=True)
class _Limit:
    """How many failures are free, and the longest wait, in seconds."""

    free: int
    longest: int

    def wait(self, failures: int) -> int:
        return 0 if failures <= self.free else min(self.longest, 2 ** min(failures - self.free, 20))


_ACCOUNT: Final = _Limit(5, 60)
_ADDRESS: Final = _Limit(10, 900)
_BROWSER: Final = _Limit(5, 900)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What was typed to sign in, and where. `browser` is the cookie of a browser that has signed in before."""

    login: str
    password: str = field(repr=False)
    address: str
    browser: str = field(default="", repr=False)


def count_attempt(gate: Gate, credentials: Credentials) -> Future[int]:
    """Count an attempt; the future gives 0, or for how many seconds to wait before the next one is counted and checked."""
    now = gate.now()
    return gate.store.write(lambda tx: _count(tx, credentials, now), quiet=True)


def check_password(gate: Gate, credentials: Credentials) -> int | None:
    """Return the id of the administrator whose login and password these are. Takes about 50 ms and 64 MiB."""
    with gate.store.reading() as tx:
        admin = administrators.find_by_login(tx, credentials.login)
    digest = admin.digest if admin is not None and admin.disabled_at is None else None
    matches = password_matches(digest, credentials.password[: LONGEST + 1])
    return admin.id if admin is not None and matches else None


def clear_attempts(gate: Gate, credentials: Credentials) -> Future[None]:
    """Forget an account's failures after a correct password; its address gets back only this one attempt."""
    now = gate.now()

    def clear(tx: Transaction) -> None:
        for subject, old in sessions.find_attempts(tx, tuple(_limits(tx, credentials))).items():
            failures = old.failures - 1 if subject.startswith("address/") else 0
            sessions.save_attempts(tx, Attempts(subject, failures, now, now))

    return gate.store.write(clear, quiet=True)


def remember_browser(gate: Gate, login: str, browser: str) -> Future[str]:
    """Recognise a browser from now on; the future gives its cookie."""
    token, now, long_ago = browser or generate_token(), gate.now(), gate.ago(_REMEMBER_FOR)

    def remember(tx: Transaction) -> str:
        sessions.delete_attempts(tx, long_ago)
        sessions.save_attempts(tx, Attempts(_browser(token, login), 0, now, now))
        return token

    return gate.store.write(remember, quiet=True)


def _count(tx: Transaction, credentials: Credentials, now: str) -> int:
    at, limits = datetime.fromisoformat(now), _limits(tx, credentials)
    kept = sessions.find_attempts(tx, tuple(limits))
    waits = [one.wait_until for one in kept.values() if one.wait_until > now]
    if waits:
        return int((datetime.fromisoformat(max(waits)) - at).total_seconds()) + 1
    for subject, limit in limits.items():
        old = kept.get(subject)
        failures = (old.failures if old and old.at > format_timestamp(at - _FORGET_AFTER) else 0) + 1
        until = format_timestamp(at + timedelta(seconds=limit.wait(failures)))
        sessions.save_attempts(tx, Attempts(subject, failures, now, until))
    return 0


def _limits(tx: Transaction, credentials: Credentials) -> dict[str, _Limit]:
    """Return the counters that an attempt is held against, each with its limit."""
    login, account = credentials.login, {f"account/{hash_token(administrators.fold_login(credentials.login))}": _ACCOUNT}
    if credentials.browser:
        known = _browser(credentials.browser, login)
        if sessions.find_attempts(tx, (known,)):
            account = {known: _BROWSER}
    return account | {f"address/{_network(credentials.address)}": _ADDRESS}


def _browser(token: str, login: str) -> str:
    return f"browser/{hash_token(token + '/' + administrators.fold_login(login))}"


def _network(address: str) -> str:
    """Return what is slowed down for an address: itself, or the /64 network of an IPv6 address."""
    try:
        return str(ip_network(f"{address.partition('%')[0]}/64", strict=False)) if ":" in address else address
    except ValueError:
        return address
