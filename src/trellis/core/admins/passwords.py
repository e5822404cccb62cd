"""Passwords of administrators: argon2id digests, made and verified."""

import secrets
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from trellis.core.fields import Invalid

SHORTEST: Final = 12  # characters of a password
LONGEST: Final = 255
# RFC 9106's low-memory profile (64 MiB, 3 passes, about 50 ms): interfaces run it in a thread, never in the writer.
_HASHER: Final = PasswordHasher()


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A new password. Parsing turns it into its argon2id digest, which is all that an operation gets to see.

    That takes about 50 ms and 64 MiB, so an interface with an event loop does it in a thread.
    """

    widget: str = "new-password"

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str) or not SHORTEST <= len(raw) <= LONGEST:
            raise Invalid(f"must have {SHORTEST} to {LONGEST} characters.")
        if len(set(raw)) < 4:
            raise Invalid("is too simple: use at least four different characters.")
        return _HASHER.hash(raw.encode("utf-8", "surrogatepass"))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST, "format": "password"}


def password_matches(digest: str | None, password: str) -> bool:
    """Return whether a password fits a digest. Takes as long where there is no digest: about 50 ms, and 64 MiB."""
    try:
        _HASHER.verify(digest or _unknown_digest(), password.encode("utf-8", "surrogatepass"))
    except (VerificationError, InvalidHashError):
        return False
    return digest is not None


@cache
def _unknown_digest() -> str:
    """Return what is verified for an unknown login, so that the time does not tell which logins exist."""
    return _HASHER.hash(secrets.token_hex())


def generate_password() -> str:
    """Generate a password: 20 letters and digits that are hard to confuse, in groups of five."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(5)) for _ in range(4))
