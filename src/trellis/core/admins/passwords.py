"""Passwords of administrators: argon2id digests, made and verified."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields import Invalid
from trellis.core.passwords import SIGN_IN, hash_password, verify_password

SHORTEST: Final = 12  # characters of a password
LONGEST: Final = 255


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
        return hash_password(raw, SIGN_IN)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST, "format": "password"}


def password_matches(digest: str | None, password: str) -> bool:
    """Return whether a password fits a digest. Takes as long where there is no digest: about 50 ms, and 64 MiB."""
    return verify_password(digest, password, SIGN_IN)


def generate_password() -> str:
    """Generate a password: 20 letters and digits that are hard to confuse, in groups of five."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(5)) for _ in range(4))
