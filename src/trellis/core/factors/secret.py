"""The keys that second factors are made and checked with: the service's own, and the operator's, if one is set.

The secret of an authenticator app is not stored, but derived from a salt that is (docs/decisions/0052). With the operator's key the
database alone is not enough to make codes. Without it, the secret is derived with the service's own key, which is in the database.
"""

import base64
import hashlib
import hmac
import secrets
from typing import Final

from trellis.store import signing
from trellis.store.engine import Transaction

_SECRET_SIZE: Final = 20  # bytes, as RFC 4226 recommends
_OWN: Final = "service"
_OPERATORS: Final = "operator"


class AppSecretUnavailable(Exception):
    """A secret was derived with an operator's key that is no longer set, or is not the one that is set now."""


def find_service_key(tx: Transaction) -> bytes:
    """Return the service's own key."""
    return signing.find_key(tx, signing.FACTORS)


def sign(key: bytes, *parts: str | bytes) -> bytes:
    """Return a signature of some parts, 32 bytes. Other parts that join to the same text have another signature."""
    texts = (part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts)
    return hmac.digest(key, b"".join(len(text).to_bytes(4, "big") + text for text in texts), hashlib.sha256)


def generate_salt(operators: str | None) -> str:
    """Generate a salt that a secret is derived from: `service:SALT`, or with the operator's key `operator:MARK:SALT`."""
    return find_salt_prefix(operators) + secrets.token_urlsafe(24)


def find_salt_prefix(operators: str | None) -> str:
    """Return the beginning of salts that are made with this operator's key, or without one."""
    return f"{_OWN}:" if operators is None else f"{_OPERATORS}:{_mark(operators)}:"


def derive_secret(tx: Transaction, admin: int, salt: str, operators: str | None) -> bytes:
    """Return the secret of an administrator's app. Raises AppSecretUnavailable."""
    key, (form, *rest) = find_service_key(tx), salt.split(":")
    if form == _OPERATORS:
        if operators is None or not rest or not hmac.compare_digest(rest[0].encode("utf-8", "replace"), _mark(operators).encode()):
            raise AppSecretUnavailable
        key = sign(key, "operator", operators)
    return sign(key, "app", str(admin), salt)[:_SECRET_SIZE]


def format_secret(secret: bytes) -> str:
    """Return a secret in base32, as apps expect it."""
    return base64.b32encode(secret).decode()


def _mark(operators: str) -> str:
    """Return a short text that identifies a key without revealing anything of it."""
    return sign(operators.encode(), "trellis second factor mark").hex()[:12]
