"""The secret that a webhook's messages are signed with: `whsec_` and 32 bytes in base64, and how it is kept.

What signs must be had again at every message, so no digest will do. Without a key of the operator's the secret itself is
kept; with one, a salt is kept, and the secret is HMAC-SHA256 of the salt under that key: the database alone cannot sign.
"""

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

_PREFIX: Final = "whsec_"
_SIZE: Final = 32
_PLAIN: Final = "plain"
_DERIVED: Final = "derived"
_LOOKS_LIKE_ONE: Final = re.compile(r"whsec_[A-Za-z0-9+/=_-]{8,}")


class SecretUnavailable(Exception):
    """A secret was made from another key than the one that is set now, or from one that is not set any more."""


def generate_secret(key: str | None) -> str:
    """Make a secret, in the form in which it is kept: `plain:SECRET` or `derived:MARK:SALT`."""
    random = base64.b64encode(secrets.token_bytes(_SIZE)).decode()
    return f"{_PLAIN}:{random}" if key is None else f"{_DERIVED}:{_fingerprint(key)}:{random}"


def derive_secret(kept: str, key: str | None) -> bytes:
    """Give the secret of what is kept. Raises SecretUnavailable."""
    form, _, rest = kept.partition(":")
    if form == _PLAIN:
        return base64.b64decode(rest)
    mark, _, salt = rest.partition(":")
    if key is None or not hmac.compare_digest(mark, _fingerprint(key)):
        raise SecretUnavailable("The secret was made with another TRELLIS_WEBHOOK_KEY. Set that one again, or rotate the secret.")
    return _digest(key, b"secret:" + base64.b64decode(salt))


def format_secret(kept: str, key: str | None) -> str:
    """Write a secret as its receiver is told it, once."""
    return _PREFIX + base64.b64encode(derive_secret(kept, key)).decode()


def redact_secrets(text: str) -> str:
    """Hide whatever looks like a secret."""
    return _LOOKS_LIKE_ONE.sub(f"{_PREFIX}[hidden]", text)


def _fingerprint(key: str) -> str:
    """Give a short text by which a key is recognised, and which reveals nothing of it."""
    return _digest(key, b"mark").hex()[:12]


def _digest(key: str, text: bytes) -> bytes:
    return hmac.digest(key.encode(), b"trellis webhook " + text, hashlib.sha256)
