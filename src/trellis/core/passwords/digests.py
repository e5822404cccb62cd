"""Digests of passwords (argon2id).

Making or checking one is slow on purpose. It is done in lanes.py, except for passwords that become known only in the writer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from argon2 import PasswordHasher


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of making a digest: passes, KiB of memory, and threads."""

    passes: int
    memory: int
    threads: int

    def hasher(self) -> "PasswordHasher":
        """Return a hasher with these parameters."""
        from argon2 import PasswordHasher  # noqa: PLC0415  # start-up time: few processes ever see a password

        return PasswordHasher(self.passes, self.memory, self.threads)


SIGN_IN: Final = Cost(3, 64 * 1024, 4)  # RFC 9106's low-memory profile: about 50 ms
NODE: Final = Cost(2, 19 * 1024, 1)  # OWASP's minimum: 15 ms


@dataclass(frozen=True, slots=True)
class Plain:
    """A password as it was typed, and the cost of its digest. The gate replaces it with the digest."""

    text: str = field(repr=False)
    cost: Cost

    def digest(self, kept: str | None = None) -> str:
        """Return the digest. If the password matches the one that is stored so far, that one is kept."""
        if kept is not None and verify_password(kept, self.text, self.cost):
            return kept
        return hash_password(self.text, self.cost)


Digests = Mapping[tuple[Plain, str | None], str]  # by the password, and the digest that was stored when it was compared with it


def find_digest(made: Digests, plain: Plain, kept: str | None) -> str | None:
    """Return the digest of a password among those made before; None if the password must be compared with the stored one first."""
    if (plain, kept) in made:
        return made[plain, kept]
    own = _list_own(made, plain)
    if kept in own:
        return kept
    return own[0] if own and (kept is None or kept in made.values()) else None


def compare(made: Digests, plain: Plain, kept: str | None) -> str:
    """Return the stored digest if a password matches it, otherwise the password's own digest, which is made if there is none."""
    if own := _list_own(made, plain):
        return kept if kept is not None and verify_password(kept, plain.text, plain.cost) else own[0]
    return plain.digest(kept)


def _list_own(made: Digests, plain: Plain) -> list[str]:
    return [digest for (one, _), digest in made.items() if one == plain]


def has_password(values: Mapping[str, Any]) -> bool:
    """Return whether any of the values is a password that has no digest yet."""
    return any(isinstance(value, Plain) for value in values.values())


def list_passwords(values: Mapping[str, Any], kept: Mapping[str, str | None]) -> dict[str, tuple[Plain, str | None]]:
    """Return the passwords among some values, each with the digest that is stored now, if any."""
    return {name: (value, kept.get(name)) for name, value in values.items() if isinstance(value, Plain)}


def hash_password(password: str, cost: Cost) -> str:
    """Return the digest of a password."""
    return cost.hasher().hash(_encode(password))


def verify_password(digest: str | None, password: str, cost: Cost) -> bool:
    """Return whether a password matches a digest. Takes just as long without a digest, so that the time reveals nothing."""
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415  # as above

    if digest is None:
        hash_password(password, cost)
        return False
    try:
        return cost.hasher().verify(digest, _encode(password))
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(digest: str, cost: Cost) -> bool:
    """Return whether a digest was made at another cost, or by another algorithm, than new ones are."""
    return cost.hasher().check_needs_rehash(digest)


def _encode(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
