"""Who is signed in, the panel's cookies, and the tokens that tie a form to its session. `core.admins` keeps the sessions."""

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.admin.runner import Runner
from trellis.core.admins import SignedIn, find_session, record_session_use
from trellis.errors import Refused

_MOST_BYTES: Final = 1200  # of a text in a cookie; quotes double there, and Base64 adds a third
_PATIENCE: Final = 2.0  # seconds that a page waits until the use of its session is recorded


async def find_signed_in(runner: Runner, token: str, address: str, *, records: bool) -> SignedIn | None:
    """Return who is signed in with the live session of a cookie, and record, at most once a minute, that it was used.

    If the use cannot be recorded soon, that is left to the next request: pages can be read while others write, or while nobody can.
    """
    me = await runner.read(find_session, token)
    if records and me is not None and not me.use_is_recorded:
        with suppress(Refused, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await runner.write(record_session_use, me.session, address)
    return me


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
    except ValueError:
        return None


def read_cookie(headers: Headers, name: str) -> str:
    """Return the cookie with this name; "" if it was not sent. Others are not parsed: there may be any number of them."""
    found = re.search(rf"(?:^|;) *{re.escape(name)}=([^;]*)", "; ".join(headers.getlist("cookie")))
    return "" if found is None else found[1].strip().strip('"')


def set_cookie(response: Response, name: str, value: str, age: int | None, *, secure: bool) -> None:
    """Put a cookie on a response. `age` is how many seconds the browser keeps it; None means until it is closed."""
    path = "/" if secure else PREFIX
    response.set_cookie(name, value, max_age=age, path=path, secure=secure, httponly=True, samesite="lax")
