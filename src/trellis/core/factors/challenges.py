"""Challenges that passkeys answer, or that prove that a password was entered. Nothing about them is stored until they are accepted.

They are signed, valid for some minutes, and bound to the browser that they were given to: to its session, or to its visitor token.
A passkey answers a challenge only once, and none that is older than the newest one that it has answered.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Final

from trellis.core.factors.secret import sign
from trellis.timestamps import CLOCKS_DIFFER

_CHALLENGE_HOLDS: Final = timedelta(minutes=5)
_TIME_SIZE: Final = 8  # bytes
_SIZE: Final = 56  # bytes: the time, 16 random bytes, the signature


def issue_challenge(key: bytes, now: str, purpose: str, binding: str) -> bytes:
    """Return a new challenge for a purpose, bound to a browser."""
    unsigned = _milliseconds(now).to_bytes(_TIME_SIZE, "big") + secrets.token_bytes(16)
    return unsigned + sign(key, "challenge", purpose, binding, unsigned)


def is_live_challenge(  # everything that it is bound to
    key: bytes, now: str, purpose: str, binding: str, challenge: bytes, holds: timedelta = _CHALLENGE_HOLDS
) -> bool:
    """Return whether a challenge was recently issued for this purpose and this browser."""
    if len(challenge) != _SIZE:
        return False
    unsigned, signature = challenge[:-32], challenge[-32:]
    age = _milliseconds(now) - issued_at(challenge)
    signed = sign(key, "challenge", purpose, binding, unsigned)
    return hmac.compare_digest(signature, signed) and abs(age) <= holds / timedelta(milliseconds=1)


def issued_at(challenge: bytes) -> int:
    """Return when a challenge was issued, in milliseconds."""
    return int.from_bytes(challenge[:_TIME_SIZE], "big")


def is_spent(now: str, challenge: bytes, newest: bytes) -> bool:
    """Return whether a challenge is the newest one that was answered, or older than that.

    If `newest` lies in the future, the clock has been set back since, and what is issued now counts as newer.
    """
    is_older = issued_at(challenge) < issued_at(newest) <= _milliseconds(now) + CLOCKS_DIFFER / timedelta(milliseconds=1)
    return challenge == newest or is_older


def mark_password(admin: int, digest: str) -> str:
    """Return a mark of the password that an administrator has now. It changes with the password."""
    return hashlib.sha256(f"{admin} {digest}".encode()).hexdigest()


def issue_pending(key: bytes, now: str, binding: str, mark: str) -> str:
    """Return proof that the password with a mark was entered, which a browser sends with a second factor.

    Without a mark, because the password was wrong, return something that looks the same but proves nothing.
    """
    return encode(issue_challenge(key, now, _name_password(mark or secrets.token_hex()), binding))


def is_pending(key: bytes, now: str, binding: str, mark: str, pending: str) -> bool:
    """Return whether `pending` proves that the password with a mark was recently entered."""
    return is_live_challenge(key, now, _name_password(mark), binding, decode(pending))


def was_pending(pending: str, at: str) -> bool:
    """Return whether `pending`, which `is_pending` has found valid, was issued before a time."""
    return issued_at(decode(pending)) < _milliseconds(at)


def is_expired(now: str, pending: str) -> bool:
    """Return whether the password, right or wrong, was entered too long ago."""
    return abs(_milliseconds(now) - issued_at(decode(pending))) > _CHALLENGE_HOLDS / timedelta(milliseconds=1)


def _name_password(mark: str) -> str:
    """Return the purpose of a challenge that proves that the password with a mark was entered."""
    return f"password {mark}"


def encode(data: bytes) -> str:
    """Encode bytes as browsers do: base64url, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decode base64url. Return no bytes for a text that is not base64url."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def _milliseconds(now: str) -> int:
    return round(datetime.fromisoformat(now).timestamp() * 1000)
