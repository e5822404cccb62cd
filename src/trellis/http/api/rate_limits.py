"""Rate limits: requests per key, and requests without a valid key per address."""

import time
from typing import Final, NamedTuple

from trellis.core.networks import find_network
from trellis.errors import Refused
from trellis.http.api.shared_windows import SharedWindows
from trellis.http.api.windows import RateWindows
from trellis.sentences import format_seconds, say, say_many

WINDOW: Final = 60  # seconds
_ADDRESSES: Final = 10_000  # for which a process counts invalid keys at a time
_BEHIND: Final = 100  # with Redis, a process may hold back counts up to a key's limit divided by this: see `SharedWindows`


class Allowance(NamedTuple):
    """A key's allowance: requests per window, how many are left of this one, and when the next begins (Unix seconds)."""

    limit: int
    remaining: int
    reset: int


class Throttle:
    """Counts requests in fixed windows of a minute: in this process, or in Redis for all processes together.

    Addresses that have to wait are remembered, so that a request costs nothing while there are none. A process looks up the count
    of an address in Redis only after it has itself seen an invalid key from that address.
    """

    def __init__(self, storage: str, bad_keys: int) -> None:
        self._shared = SharedWindows(storage, WINDOW) if storage != "memory://" else None
        self._keys = RateWindows()
        self._bad_keys = bad_keys
        self._bad = RateWindows(_ADDRESSES)
        self._bad_until = 0.0  # when the last window in Redis in which this process has counted an invalid key ends
        self._throttled: dict[str, float] = {}  # network → when its window ends, on the monotonic clock
        self._throttled_until = 0.0  # when the last of these ends

    async def admit_address(self, address: str) -> None:
        """Refuse an address that has sent too many requests without a valid key until its window is over; it is never banned."""
        if self.is_quiet():
            return
        network = find_network(address)
        if self._shared is not None and self._find_wait(network) <= 0:
            self._throttle(network, *await self._shared.fetch(f"bad/{network}"))
        if (left := self._find_wait(network)) <= 0:
            return
        wait = max(1, int(left) + 1)
        raise Refused(
            "TOO_MANY_REQUESTS_WITH_BAD_KEY",
            say(
                "{address} sent too many requests without a valid key. Wait {wait}, and send a valid one.",
                address=address,
                wait=format_seconds(wait),
            ),
            facts={"retryAfter": wait},
        )

    def may_pass(self, address: str) -> bool:
        """Return whether `admit_address` admits an address without asking Redis. This is quick even if others have to wait."""
        if self.is_quiet():
            return True
        network = find_network(address)
        return self._find_wait(network) <= 0 and (self._shared is None or not self._shared.is_open(f"bad/{network}"))

    def is_quiet(self) -> bool:
        """Return whether no address has to wait, as far as this process can know."""
        return max(self._throttled_until, self._bad_until) <= time.monotonic()

    def _find_wait(self, network: str) -> float:
        """Return the number of seconds for which a network still has to wait; 0 or less if it does not."""
        return self._throttled.get(network, 0.0) - time.monotonic()

    async def count_bad_key(self, address: str) -> None:
        """Count a request without a valid key from an address."""
        network = find_network(address)
        if self._shared is None:
            self._throttle(network, *self._bad.count(network, WINDOW))
        else:
            self._bad_until = time.monotonic() + WINDOW
            self._throttle(network, *await self._shared.count(f"bad/{network}", 0))

    def _throttle(self, network: str, count: int, left: float) -> None:
        """Make an address wait until its window is over, if it has sent too many invalid keys in it."""
        if count < self._bad_keys or left <= 0:
            return
        now = time.monotonic()
        if len(self._throttled) >= _ADDRESSES:
            self._throttled = {other: end for other, end in self._throttled.items() if end > now}
        if len(self._throttled) >= _ADDRESSES:
            del self._throttled[next(iter(self._throttled))]
        self._throttled[network] = now + left
        self._throttled_until = max(self._throttled_until, now + left)

    async def admit_key(self, public: str, limit: int) -> Allowance:
        """Count a request of a key; refuse it if the key has none left in this window."""
        if self._shared is None:
            return _check(limit, *self._keys.count(public, WINDOW))
        return _check(limit, *await self._shared.count(f"key/{public}", limit // _BEHIND))

    def admit_key_at_once(self, public: str, limit: int) -> Allowance | None:
        """Count a request like `admit_key`; return None, counting nothing, if `admit_key` would refuse or wait for Redis."""
        if self._shared is None:
            counted = self._keys.count_below(public, limit)
        else:
            counted = self._shared.count_below(f"key/{public}", limit, limit // _BEHIND)
        return None if counted is None else _allow(limit, *counted)

    async def close(self) -> None:
        """End the connections to Redis."""
        if self._shared is not None:
            await self._shared.close()


def _check(limit: int, count: int, left: float) -> Allowance:
    """Return the allowance that is left after this request. Raises Refused (RATE_LIMITED) if the request exceeds the limit.

    `left` is the number of seconds until the window ends.
    """
    allowance = _allow(limit, count, left)
    if count > limit:
        wait = max(1, allowance.reset - int(time.time()))
        raise Refused(
            "RATE_LIMITED",
            say_many(
                limit,
                "This key has reached its limit of {count} request per minute. Wait {wait}.",
                "This key has reached its limit of {count} requests per minute. Wait {wait}.",
                wait=format_seconds(wait),
            ),
            facts={"retryAfter": wait, "limit": limit, "reset": allowance.reset},
        )
    return allowance


def _allow(limit: int, count: int, left: float) -> Allowance:
    return Allowance(limit, limit - count, int(time.time() + left) + 1)
