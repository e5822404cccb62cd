"""Random tokens for cookies and one-time links. The database stores only their digests."""

import hashlib
import secrets


def generate_token() -> str:
    """Generate a token of 256 random bits, safe in addresses and cookies."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token in hex, which is what the database stores of cookies and links."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
