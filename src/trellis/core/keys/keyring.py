"""Authentication: checks the key that is presented with a request."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from trellis.core.actor import Actor
from trellis.core.bounds import digest_reach
from trellis.core.fields import isolate
from trellis.core.keys.secret import parse_secret
from trellis.core.keys.state import key_state
from trellis.core.networks import is_address_allowed
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import keys
from trellis.store.engine import Transaction
from trellis.store.keys import Key

_MINUTE: Final = timedelta(minutes=1)
_MEMORY: Final = 10_000  # keys that a process remembers


@dataclass(frozen=True, slots=True)
class Bearer:
    """The holder of a valid key. `public` is the key's public part; `rate_limit` None means the service's default limit.

    `reach` is a digest of the bounds that limit what the key sees; keys with the same digest see the same. It is "" without any.
    `until` is when the presented secret expires: with the key, or earlier for the old secret of a rotated one; None means never.
    """

    actor: Actor
    public: str
    rate_limit: int | None
    log_requests: bool
    key: Key
    until: str | None
    agent: Actor  # the same actor, for requests over MCP
    reach: str = ""
    view: str = ""  # what its responses depend on besides the request: dialect and reach
    authorised: set[str] = field(default_factory=set, compare=False)  # operations that were found to be granted without an end

    def is_valid(self, now: str) -> bool:
        """Return whether the key, or the old secret of a rotated one, has not expired."""
        return self.until is None or self.until > now


class KeyNotUsable(Refused):
    """A refusal of a key that was presented in full, but is paused, revoked, expired or replaced, or used from another address.

    The log names the key. The caller is not told that the key exists, unless only the address is wrong.
    """

    def __init__(self, key: Key, message: str, detail: str) -> None:
        super().__init__(message, detail)
        self.key = key


class Keyring:
    """Checks the key of every request.

    A key that was authenticated is not compared with the database again until the key version changes, the number that changes
    with every change of a key. It is remembered under a keyed digest of the presented text, so that no secret stays in memory and
    comparison times reveal nothing. A keyring belongs to one thread; `authenticate`, which does not use its state, may run in
    another.
    """

    def __init__(self) -> None:
        self._authenticated: dict[bytes, Bearer] = {}
        self._version: int | None = None
        self._salt = os.urandom(16)
        self._used: dict[int, str] = {}
        self._pending: dict[int, str] = {}

    def find(self, presented: str, address: str, now: str, version: int | None) -> Bearer | None:
        """Return the bearer of a key that was authenticated before, or None. Raises as `admit` does."""
        if version is None or version != self._version:
            self._authenticated.clear()
            self._version = version
            return None
        bearer = self._authenticated.get(self._digest(presented))
        return None if bearer is None else self.judge(bearer, address, now)

    def admit(self, bearer: Bearer, presented: str, address: str, now: str, version: int | None) -> Bearer:
        """Remember an authenticated key and return its bearer. `version` is the key version from before it was authenticated.

        Raises Refused: INVALID_API_KEY if it has expired or been paused or revoked (not saying which), IP_ADDRESS_NOT_ALLOWED if it
        may not be used from this address.
        """
        self.judge(bearer, address, now)
        if version is not None and version == self._version and len(self._authenticated) < _MEMORY:
            self._authenticated[self._digest(presented)] = bearer
        return bearer

    def _digest(self, presented: str) -> bytes:
        return blake2b(presented.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=16).digest()

    def judge(self, bearer: Bearer, address: str, now: str) -> Bearer:
        """Return a bearer (of the current key version) if its key may be used, and record the use. Raises as `admit` does."""
        key = bearer.key
        if key.revoked_at or key.paused_at or not bearer.is_valid(now):
            raise KeyNotUsable(key, "INVALID_API_KEY", _invalid())
        if key.addresses and not is_address_allowed(address, key.addresses):
            told = say(
                "This key may not be used from {address}. Use an address on its list, or ask an administrator to add this one.",
                address=address,
            )
            raise KeyNotUsable(key, "IP_ADDRESS_NOT_ALLOWED", told)
        self.use(key.id, now)
        return bearer

    def use(self, key: int, now: str) -> None:
        """Record that a key is used, unless that was done less than a minute ago."""
        last = self._used.get(key)
        if last is not None and last[:16] == now[:16]:
            return
        if last is None or abs(datetime.fromisoformat(now) - datetime.fromisoformat(last)) >= _MINUTE:
            self._used[key] = self._pending[key] = now

    def take_uses(self) -> list[tuple[int, str]]:
        """Return the last uses that are not yet recorded, as pairs of key id and time, and clear them."""
        pending, self._pending = self._pending, {}
        return list(pending.items())

    def put_back(self, uses: Iterable[tuple[int, str]]) -> None:
        """Put back uses that could not be recorded, for the next time. Newer uses of the same keys are kept."""
        self._pending = dict(uses) | self._pending


def authenticate(tx: Transaction, presented: str, now: str) -> Bearer:
    """Return the bearer of a presented key. Raises Refused (INVALID_API_KEY) if the key does not match the stored hash."""
    secret = parse_secret(presented)
    key = keys.find_by_public_part(tx, secret.public) if secret else None
    if secret is None or key is None:
        raise Refused("INVALID_API_KEY", _invalid())
    until, digest = key.expires_at, key.digest
    if not secret.matches(digest):
        if not (key.old_digest and key.old_until and secret.matches(key.old_digest)):
            raise Refused("INVALID_API_KEY", _invalid())
        if key.old_until <= now:
            raise KeyNotUsable(key, "INVALID_API_KEY", _invalid())
        until, digest = min(key.old_until, until or key.old_until), key.old_digest
    actor = Actor.of_key(key, digest)
    agent = replace(actor, is_agent=True)
    reach = digest_reach(actor.bounds, key.id)
    return Bearer(actor, key.public, key.rate_limit, key.log_requests, key, until, agent, reach, key.dialect + reach)


def find_holder(tx: Transaction, number: int, now: str) -> Actor:
    """Return the actor that a key stands for, without its secret. Raises Refused (INVALID_API_KEY) unless the key is active."""
    key = keys.find(tx, number)
    if key is None:
        raise Refused("INVALID_API_KEY", say("There is no key {number}.", number=number))
    if (state := key_state(key, now)) != "active":
        raise Refused("INVALID_API_KEY", _describe_end(key, state))
    return Actor.of_key(key, key.digest)


def _describe_end(key: Key, state: str) -> str:
    """Say why a key in this state cannot be used."""
    if state == "revoked":
        return say("The key '{name}' was revoked.", name=isolate(key.name))
    if state == "expired":
        return say("The key '{name}' expired at {expires_at}.", name=isolate(key.name), expires_at=key.expires_at)
    return say("The key '{name}' is paused. Resume it first.", name=isolate(key.name))


def _invalid() -> str:
    return say(
        "The key is unknown or no longer valid. Check that you copied all of it (trl_…, 51 characters), or ask an administrator."
    )
