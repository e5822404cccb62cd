"""Sign-in, the panel's cookies, and the tokens that tie a form to its session. `core.admins` keeps the sessions."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.admin.runner import Runner
from trellis.core.admins import (
    Credentials,
    Proven,
    SignedIn,
    clear_attempts,
    count_attempt,
    count_failure,
    find_lane,
    find_session,
    find_wait,
    record_session_use,
)
from trellis.errors import Refused
from trellis.openid import Provider

_MOST_BYTES: Final = 1200  # of a text in a cookie; quotes double there, and Base64 adds a third
_PATIENCE: Final = 2.0  # seconds that a page waits until the use of its session is recorded


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of an attempt: who it is, or how many seconds to wait before the next one is checked; neither if it failed."""

    proven: Proven | None = None
    wait: int = 0


class Sessions:
    """Finds the session of a cookie, and checks passwords. `provider` is the OpenID provider for single sign-on, if any."""

    def __init__(self, runner: Runner, provider: Provider | None = None) -> None:
        self._runner = runner
        self.provider = provider

    async def find(self, token: str, address: str, *, records: bool = True) -> SignedIn | None:
        """Find the live session of a cookie, and record, at most once a minute, that it was used.

        If the use cannot be recorded soon, that is left to the next request: pages can be read while others write, or while nobody
        can.
        """
        me = await self._runner.read(find_session, token)
        if records and me is not None and not me.use_is_recorded:
            with suppress(Refused, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._runner.write(record_session_use, me.session, address)
        return me

    async def attempt(self, credentials: Credentials, check: Callable[[], Proven | None], *, counts: bool = True) -> Attempt:
        """Check what was typed, unless there were too many failures lately. Raises Refused (TOO_MANY_PASSWORDS).

        The first of two steps does not count as an attempt: its outcome is not revealed, and somebody who has to wait between
        attempts could never complete both steps.

        A correct password does not clear the failures: somebody who knows it could then guess the second factor for ever. `settle`
        clears them.
        """
        gate, lane = self._runner.gate, await self._runner.read(find_lane, credentials)

        def count_and_check() -> Attempt:
            wait = count_attempt(gate, credentials).result() if counts else find_wait(gate, credentials)
            return Attempt(wait=wait) if wait else Attempt(check())

        # It is counted in its lane, which may be full: an attempt that is not checked is no failure.
        attempt = await asyncio.wrap_future(gate.lanes.submit(lane, count_and_check))
        if attempt.proven is None and not attempt.wait:
            await self._runner.write(count_failure, credentials)
        return attempt

    async def settle(self, credentials: Credentials) -> None:
        """Clear the failures of somebody who has given everything that is asked for."""
        await self._runner.write(clear_attempts, credentials)


def csrf_token(token: str) -> str:
    """Return the token that every form of a session carries: derived from its cookie, which no other site can read."""
    return sign(token, "csrf")


def sign(token: str, text: str) -> str:
    """Sign a text with a cookie's value."""
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_equal(one: str, other: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def seal(token: str, values: Mapping[str, str]) -> str:
    """Return texts as the value of a cookie, signed with the value of another cookie."""
    text = base64.urlsafe_b64encode(orjson.dumps(values)).decode()
    return f"{text}.{sign(token, text)}"


def cut_to_cookie(text: str) -> str:
    """Cut a text so that a sealed cookie has room for it: browsers drop a cookie of more than 4096 bytes."""
    return text.encode()[:_MOST_BYTES].decode(errors="ignore")


def unseal(token: str, sealed: str) -> dict[str, str] | None:
    """Return the texts of a cookie that `seal` made; None if its signature does not match or it cannot be read."""
    text, _, signature = sealed.partition(".")
    if not is_equal(sign(token, text), signature):
        return None
    try:
        return {str(name): str(value) for name, value in orjson.loads(base64.urlsafe_b64decode(text)).items()}
    except (ValueError, binascii.Error, orjson.JSONDecodeError):
        return None


def read_cookie(headers: Headers, name: str) -> str:
    """Return the cookie with this name; "" if it was not sent. Others are not parsed: there may be any number of them."""
    found = re.search(rf"(?:^|;) *{re.escape(name)}=([^;]*)", "; ".join(headers.getlist("cookie")))
    return "" if found is None else found[1].strip().strip('"')


def set_cookie(response: Response, name: str, value: str, age: int | None, *, secure: bool) -> None:
    """Put a cookie on a response. `age` is how many seconds the browser keeps it; None means until it is closed."""
    path = "/" if secure else PREFIX
    response.set_cookie(name, value, max_age=age, path=path, secure=secure, httponly=True, samesite="lax")
