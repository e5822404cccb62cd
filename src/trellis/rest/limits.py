"""How often: requests per key, and requests with a bad key per address. The counting is done by the library `limits`."""

import logging
import time
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_network
from typing import Final

from limits.aio.storage import RedisStorage
from limits.storage import MemoryStorage

from trellis.errors import Refused

log = logging.getLogger(__name__)

WINDOW: Final = 60  # seconds
_MEMORY: Final = 10_000  # windows whose ends a process remembers


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a key has: requests per window, how many are left of this one, and when the next begins (Unix seconds)."""

    limit: int
    remaining: int
    reset: int


class Throttle:
    """Counts in fixed windows of a minute, in this process or in Redis."""

    def __init__(self, storage: str, bad_keys: int) -> None:
        self._memory = MemoryStorage() if storage == "memory://" else None
        self._redis = None if self._memory is not None else RedisStorage("async+" + storage, implementation="redispy")
        self._bad_keys = bad_keys
        self._bad_seen = False
        self._resets: dict[str, int] = {}

    async def admit_address(self, address: str) -> None:
        """Refuse an address that has sent too many bad keys. It passes again once its window is over; it is never banned."""
        if self._memory is not None and not self._bad_seen:
            return
        name = f"bad/{_network(address)}"
        if await self._get(name) >= self._bad_keys:
            wait = max(1, int(await self._expiry(name) - time.time()) + 1)
            raise Refused(
                "TOO_MANY_REQUESTS_WITH_BAD_KEY",
                f"Too many requests with a bad key came from {address}. Wait {wait} seconds, and send a good one.",
                facts={"retryAfter": wait},
            )

    async def count_bad_key(self, address: str) -> None:
        """Remember that a bad key came from an address."""
        self._bad_seen = True
        await self._incr(f"bad/{_network(address)}")

    async def admit_key(self, public: str, limit: int) -> Allowance:
        """Count a request of a key; refuse it when the key has none left in this window."""
        name = f"key/{public}"
        count = await self._incr(name)
        if count == 1 or self._resets.get(name, 0) <= time.time():  # the end of a window is asked for once
            if len(self._resets) >= _MEMORY:
                self._resets.clear()
            self._resets[name] = int(await self._expiry(name)) + 1
        reset = self._resets[name]
        if count > limit:
            wait = max(1, reset - int(time.time()))
            raise Refused(
                "RATE_LIMITED",
                f"This key may send {limit} requests a minute, and has. Wait {wait} seconds.",
                facts={"retryAfter": wait, "limit": limit, "reset": reset},
            )
        return Allowance(limit, max(0, limit - count), reset)

    async def _get(self, name: str) -> int:
        if self._memory is not None:
            return self._memory.get(name)
        return await self._ask("get", name, 0)

    async def _incr(self, name: str) -> int:
        if self._memory is not None:
            return self._memory.incr(name, WINDOW)
        try:
            return int(await self._redis_or_fail().incr(name, WINDOW))
        except Exception as error:  # noqa: BLE001  # whatever Redis has: see _ask
            log.warning("Requests are not counted, since Redis does not answer: %s", error)
            return 0

    async def _expiry(self, name: str) -> float:
        if self._memory is not None:
            return self._memory.get_expiry(name)
        return await self._ask("get_expiry", name, int(time.time()) + WINDOW)

    async def _ask(self, question: str, name: str, otherwise: int) -> int:
        """Ask Redis; when it does not answer, let the request pass: a counter that is down must not take the service down."""
        try:
            return int(await getattr(self._redis_or_fail(), question)(name))
        except Exception as error:  # noqa: BLE001
            log.warning("Requests are not counted, since Redis does not answer: %s", error)
            return otherwise

    def _redis_or_fail(self) -> RedisStorage:
        if self._redis is None:
            raise RuntimeError("no storage")
        return self._redis

    async def close(self) -> None:
        """Stop the timer of the counter in memory, or end the connections to Redis."""
        if self._memory is not None:
            self._memory.timer.cancel()
        if self._redis is not None:
            await self._redis.bridge.storage.aclose()  # type: ignore[attr-defined]  # the client of the bridge to redis-py


def _network(address: str) -> str:
    """Give the unit that an address is throttled by: itself, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
