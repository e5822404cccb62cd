"""The judgement of a key that is presented with a request."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from trellis.core.actor import Actor
from trellis.core.secret import parse_secret
from trellis.errors import Refused
from trellis.store import keys
from trellis.store.keys import Key
from trellis.store.transaction import Transaction

_MEMORY: Final = 10_000  # keys that a process remembers


@dataclass(frozen=True, slots=True)
class Bearer:
    """Whoever presented a good key. `public` is the key's public part; `rate_limit` None is the service's own."""

    actor: Actor
    public: str
    rate_limit: int | None
    log_requests: bool
    key: Key


class Keyring:
    """Judges presented keys against the database, on every request."""

    def __init__(self) -> None:
        self._known: dict[str, Bearer] = {}
        self._version: int | None = None
        self._used: dict[int, str] = {}
        self._pending: dict[int, str] = {}

    def judge(self, tx: Transaction, presented: str, address: str, now: str, version: int | None = None) -> Bearer:
        """Give the bearer of a key. `version` is the data version that holds now, None where the database has none.

        Raises Refused: INVALID_API_KEY for one that is unknown, malformed, expired or revoked (not saying which), and
        IP_ADDRESS_NOT_ALLOWED for a good one that may not be used from this address.
        """
        secret = parse_secret(presented)
        bearer = self._bearer(tx, secret.public, version) if secret else None
        if secret is None or bearer is None:
            raise _invalid()
        key = bearer.key
        good = secret.matches(key.digest)
        if not good and key.old_digest and key.old_until and key.old_until > now:
            good = secret.matches(key.old_digest)
        if not good or key.revoked_at or (key.expires_at and key.expires_at <= now):
            raise _invalid()
        if key.addresses and not _allowed(address, key.addresses):
            raise Refused(
                "IP_ADDRESS_NOT_ALLOWED",
                f"This key may not be used from {address}. Use it from an address on its list, or have this one added to it.",
            )
        if self._used.get(key.id) != (minute := now[:16]):
            self._used[key.id] = minute
            self._pending[key.id] = now
        return bearer

    def _bearer(self, tx: Transaction, public: str, version: int | None) -> Bearer | None:
        """Read a key. Where the database can tell that nothing has been committed since, what was read last still holds."""
        if version is None or version != self._version:
            self._known.clear()
            self._version = version
        if (bearer := self._known.get(public)) is not None:
            return bearer
        key = keys.by_public(tx, public)
        if key is None:
            return None
        actor = Actor("key", key.id, key.name, frozenset(key.grants))
        bearer = Bearer(actor, key.public, key.rate_limit, key.log_requests, key)
        if version is not None and len(self._known) < _MEMORY:
            self._known[public] = bearer
        return bearer

    def take_uses(self) -> list[tuple[int, str]]:
        """Give the last uses that are not yet recorded, as pairs of key id and moment, and forget them."""
        pending, self._pending = self._pending, {}
        return list(pending.items())


def _invalid() -> Refused:
    return Refused(
        "INVALID_API_KEY",
        "The key is not known, or no longer good. Check that it was copied whole (trl_…, 51 characters) and ask an administrator.",
    )


def _allowed(address: str, networks: Iterable[str]) -> bool:
    try:
        caller = ip_address(address)
    except ValueError:
        return False
    if isinstance(caller, IPv6Address) and caller.ipv4_mapped:
        caller = caller.ipv4_mapped
    return any(caller in ip_network(network) for network in networks)
