"""Sign-in and the tokens that tie a form to its session. The sessions themselves are kept by `core.admins`."""

import asyncio
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from trellis.admin.runner import Runner
from trellis.core.admins import (
    Credentials,
    SignedIn,
    check_password,
    clear_attempts,
    count_attempt,
    find_session,
    record_session_use,
)

_MAX_CONCURRENT: Final = 2  # passwords checked at a time, 64 MiB each


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of an attempt: the administrator's id, or for how many seconds to wait before the next one is checked."""

    admin: int | None = None
    wait: int = 0


class Sessions:
    """Finds the session of a cookie, and checks passwords, a few at a time."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._checking = asyncio.Semaphore(_MAX_CONCURRENT)

    async def find(self, token: str, address: str) -> SignedIn | None:
        """Find the live session of a cookie, and record, at most once a minute, that it was used."""
        me = await self._runner.read(find_session, token)
        if me is not None and not me.use_is_recorded:
            await self._runner.write(record_session_use, me.session, address)
        return me

    async def attempt(self, credentials: Credentials) -> Attempt:
        """Check a login and a password, unless there were too many failures lately."""
        if wait := await self._runner.write(count_attempt, credentials):
            return Attempt(wait=wait)
        async with self._checking:
            admin = await asyncio.to_thread(check_password, self._runner.gate, credentials)
        if admin is not None:
            await self._runner.write(clear_attempts, credentials)
        return Attempt(admin)


def csrf_token(token: str) -> str:
    """Return the token that every form of a session carries: derived from its cookie, which no other site can read."""
    return sign(token, "csrf")


def sign(token: str, text: str) -> str:
    """Sign a text with a cookie's value."""
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_equal(one: str, other: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
