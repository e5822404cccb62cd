"""Who is signed in: sessions, the slowing of guesses, and the tokens that tie a form to its session.

A session's cookie holds 256 random bits; the database holds only their SHA-256, so that signing out, disabling and a new
password take effect everywhere with the next request. It ends after 8 hours without a request, and after 7 days at most.

Guesses are counted before they are judged, so that many at once gain nothing: by account, and by address. Each count grants a
few free attempts and then asks for a wait that doubles up to a bound and expires by itself. A browser that has signed in to an
account before is counted apart from the account, so that a stranger's guesses do not slow down its owner.
"""

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Final

from trellis.admin.house import House
from trellis.core import admins as rules
from trellis.core.actor import Actor
from trellis.core.fields import format_timestamp
from trellis.store.admins import Administrator, Attempts, Session, administrators, sessions
from trellis.store.engine import Transaction

IDLE: Final = timedelta(hours=8)
LIFE: Final = timedelta(days=7)
CONFIRMED: Final = timedelta(minutes=15)  # for how long an entered password counts as entered just now
_TOUCH_AFTER: Final = timedelta(minutes=1)
_FORGET: Final = timedelta(hours=24)  # failures without another one
_REMEMBER: Final = timedelta(days=90)  # browsers that have signed in
_AT_ONCE: Final = 2  # passwords judged at a time, 64 MiB each


@dataclass(frozen=True, slots=True)
class _Patience:
    """How many failures cost nothing, and how long the wait grows, in seconds."""

    free: int
    longest: int

    def wait(self, failures: int) -> int:
        return 0 if failures <= self.free else min(self.longest, 2 ** min(failures - self.free, 20))


_ACCOUNT: Final = _Patience(5, 60)
_ADDRESS: Final = _Patience(10, 900)
_BROWSER: Final = _Patience(5, 900)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A live session and whose it is."""

    session: Session
    id: int
    name: str
    login: str

    @property
    def actor(self) -> Actor:
        """The administrator as events name them."""
        return Actor("admin", self.id, self.name)

    def confirmed(self, now: str) -> bool:
        """Say whether the password was entered in the last quarter of an hour."""
        return bool(self.session.confirmed_until and self.session.confirmed_until > now)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of an attempt: the administrator, or for how many seconds to wait before the next one is judged."""

    admin: Administrator | None = None
    wait: int = 0


def new_token() -> str:
    """Make a cookie's value."""
    return secrets.token_urlsafe(32)


def csrf_token(token: str) -> str:
    """Give the token that every form of a session carries: worked out from its cookie, which no other site can read."""
    return seal(token, "csrf")


def seal(token: str, text: str) -> str:
    """Sign a text with a cookie's value."""
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._judging = asyncio.Semaphore(_AT_ONCE)

    @property
    def _now(self) -> str:
        return self._house.gate.now()

    def _idle(self) -> str:
        return self._house.gate.ago(IDLE)

    async def find(self, token: str, address: str) -> SignedIn | None:
        """Find the live session of a cookie, and note, at most once a minute, that it was used."""
        digest, now, idle = rules.hash_token(token), self._now, self._idle()
        found = await self._house.read(lambda tx: sessions.find_live(tx, digest, now, idle))
        if found is None:
            return None
        session, name, login = found
        if session.seen_at < self._house.gate.ago(_TOUCH_AFTER):
            await self._house.write(lambda tx: sessions.record_use(tx, digest, now, address))
        return SignedIn(session, session.admin_id, name, login)

    async def begin(self, admin: int, address: str, agent: str) -> str:
        """Begin a session, its password just entered; give its cookie."""
        token, now = new_token(), self._now
        at = datetime.fromisoformat(now)
        session = Session(
            digest=rules.hash_token(token),
            admin_id=admin,
            created_at=now,
            seen_at=now,
            expires_at=format_timestamp(at + LIFE),
            confirmed_until=format_timestamp(at + CONFIRMED),
            address=address,
            agent=agent[:300],
        )
        await self._house.write(lambda tx: sessions.insert(tx, session))
        return token

    async def confirm(self, digest: str) -> None:
        """Note that the password of a session was entered again."""
        until = format_timestamp(datetime.fromisoformat(self._now) + CONFIRMED)
        await self._house.write(lambda tx: sessions.confirm(tx, digest, until))

    async def of_admin(self, admin: int) -> list[Session]:
        """Give the live sessions of an administrator."""
        now, idle = self._now, self._idle()
        return await self._house.read(lambda tx: sessions.find_live_by_admin(tx, admin, now, idle))

    async def end(self, digest: str) -> None:
        """End a session."""
        await self._house.write(lambda tx: sessions.end(tx, digest))

    async def end_others(self, admin: int, but: str) -> int:
        """End all sessions of an administrator but one; give their number."""
        return await self._house.write(lambda tx: sessions.end_all(tx, admin, but=but))

    # --- passwords ------------------------------------------------------------------------------------------------

    async def attempt(self, login: str, password: str, address: str, browser: str = "") -> Attempt:
        """Judge a login and a password. `browser` is the cookie by which a browser that has signed in before is known."""
        subjects = await self._subjects(login, address, browser)
        wait = await self._house.write(lambda tx: self._count(tx, subjects))
        if wait:
            return Attempt(wait=wait)
        admin = await self._house.read(lambda tx: administrators.find_by_login(tx, login))
        digest = admin.digest if admin is not None and admin.disabled_at is None else None
        async with self._judging:
            good = await asyncio.to_thread(rules.password_matches, digest, password[: rules.LONGEST + 1])
        if not good:
            return Attempt()
        await self._house.write(lambda tx: self._clear(tx, subjects))
        return Attempt(admin)

    async def remember(self, login: str, browser: str) -> str:
        """Know a browser again from now on; give its cookie."""
        token, now = browser or new_token(), self._now
        subject, long_ago = _browser(token, login), self._house.gate.ago(_REMEMBER)

        def write(tx: Transaction) -> None:
            sessions.delete_attempts(tx, long_ago)
            sessions.save_attempts(tx, Attempts(subject, 0, now, now))

        await self._house.write(write)
        return token

    async def _subjects(self, login: str, address: str, browser: str) -> dict[str, _Patience]:
        account = {f"account/{rules.hash_token(administrators.fold_login(login))}": _ACCOUNT}
        if browser:
            known = _browser(browser, login)
            if await self._house.read(lambda tx: sessions.find_attempts(tx, (known,))):
                account = {known: _BROWSER}
        return account | {f"address/{_network(address)}": _ADDRESS}

    def _count(self, tx: Transaction, subjects: dict[str, _Patience]) -> int:
        """Count an attempt against all subjects, unless one of them has to wait: then give the seconds."""
        now = self._now
        at = datetime.fromisoformat(now)
        kept = sessions.find_attempts(tx, tuple(subjects))
        waits = [until for subject in kept if (until := kept[subject].wait_until) > now]
        if waits:
            return int((datetime.fromisoformat(max(waits)) - at).total_seconds()) + 1
        for subject, patience in subjects.items():
            old = kept.get(subject)
            failures = (old.failures if old and old.at > format_timestamp(at - _FORGET) else 0) + 1
            until = format_timestamp(at + timedelta(seconds=patience.wait(failures)))
            sessions.save_attempts(tx, Attempts(subject, failures, now, until))
        return 0

    def _clear(self, tx: Transaction, subjects: dict[str, _Patience]) -> None:
        """Forget the failures of an account after a good password; an address gets back the one attempt only."""
        now = self._now
        for subject, old in sessions.find_attempts(tx, tuple(subjects)).items():
            failures = old.failures - 1 if subject.startswith("address/") else 0
            sessions.save_attempts(tx, Attempts(subject, failures, now, now))


def _browser(token: str, login: str) -> str:
    return f"browser/{rules.hash_token(token + '/' + administrators.fold_login(login))}"


def _network(address: str) -> str:
    """Give the unit that an address is slowed by: itself, or the /64 network of an IPv6 address."""
    try:
        return str(ip_network(f"{address.partition('%')[0]}/64", strict=False)) if ":" in address else address
    except ValueError:
        return address
