"""Random tokens for cookies and one-time links, and the links of invitations. The database stores only their digests."""

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from trellis.core.fields import shift_timestamp
from trellis.store.admins import invitations
from trellis.store.engine import Transaction

_LIFETIME: Final = timedelta(days=3)


def generate_token() -> str:
    """Generate a token of 256 random bits, safe in addresses and cookies."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token in hex, which is what the database stores of cookies and links."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def make_link(tx: Transaction, admin: int, now: str) -> tuple[str, str]:
    """Make a link that replaces the previous one; return its secret, which cannot be read again, and when it expires."""
    token = generate_token()
    until = shift_timestamp(now, _LIFETIME)
    invitations.put(tx, admin, hash_token(token), until)
    return token, until


def is_open(tx: Transaction, admin: int, now: str) -> bool:
    """Return whether an administrator has an invitation that has not been used or withdrawn, and has not expired."""
    return admin in invitations.find_ends(tx, [admin], now)
