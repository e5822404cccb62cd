"""The secret that a webhook's messages are signed with (`whsec_` and 32 bytes in base64), and how it is stored.

Signing needs the secret itself, so a hash will not do. Without a key set by the operator the secret itself is stored; with one, a
salt is stored and the secret is the HMAC-SHA256 of the salt under that key, so the database alone is not enough to sign.
"""

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

from trellis.sentences import say
from trellis.store.webhooks import reasons

_PREFIX: Final = "whsec_"
_SIZE: Final = 32
_PLAIN: Final = "plain"
_DERIVED: Final = "derived"
_LOOKS_LIKE_ONE: Final = re.compile(r"whsec_[A-Za-z0-9+/=_-]{8,}")


class SecretUnavailable(Exception):
    """Raised if a secret was derived from a key that is no longer set, or that is not the one that is set now."""


def generate_secret(key: str | None) -> str:
    """Generate a secret, in the form in which it is stored: `plain:SECRET` or `derived:MARK:SALT`."""
    random = base64.b64encode(secrets.token_bytes(_SIZE)).decode()
    return f"{_PLAIN}:{random}" if key is None else f"{_DERIVED}:{_fingerprint(key)}:{random}"


def derive_secret(kept: str, key: str | None) -> bytes:
    """Return the secret for its stored form. Raises SecretUnavailable."""
    form, _, rest = kept.partition(":")
    if form == _PLAIN:
        return base64.b64decode(rest)
    mark, _, salt = rest.partition(":")
    if key is None or not hmac.compare_digest(mark, _fingerprint(key)):
        raise SecretUnavailable(say(reasons.OTHER_KEY))
    return _digest(key, b"secret:" + base64.b64decode(salt))


def format_secret(kept: str, key: str | None) -> str:
    """Format a secret as it is shown to the receiver, once."""
    return _PREFIX + base64.b64encode(derive_secret(kept, key)).decode()


def redact_secrets(text: str) -> str:
    """Replace whatever looks like a secret."""
    return _LOOKS_LIKE_ONE.sub(f"{_PREFIX}[hidden]", text)


def _fingerprint(key: str) -> str:
    """Return a short text that identifies a key without revealing anything about it."""
    return _digest(key, b"mark").hex()[:12]


def _digest(key: str, text: bytes) -> bytes:
    return hmac.digest(key.encode(), b"trellis webhook " + text, hashlib.sha256)
