"""How often: requests per key, and requests with a bad key per address."""

import logging
import time
from ipaddress import IPv6Address, ip_network
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trellis.errors import Refused
from trellis.rest.windows import RateWindows

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage

log = logging.getLogger(__name__)

WINDOW: Final = 60  # seconds
_MEMORY: Final = 10_000  # windows in Redis whose ends a process remembers


class Allowance(NamedTuple):
    """What a key has: requests per window, how many are left of this one, and when the next begins (Unix seconds)."""

    limit: int
    remaining: int
    reset: int


class Throttle:
    """Counts in fixed windows of a minute: in this process, or in Redis for all of them together."""

    def __init__(self, storage: str, bad_keys: int) -> None:
        self._memory = RateWindows() if storage == "memory://" else None
        self._redis = _connect_redis(storage) if self._memory is None else None
        self._bad_keys = bad_keys
        self._bad_seen = False
        self._resets: dict[str, float] = {}

    async def admit_address(self, address: str) -> None:
        """Refuse an address that has sent too many bad keys. It passes again once its window is over; it is never banned."""
        if self._memory is not None and not self._bad_seen:
            return
        name = f"bad/{_network(address)}"
        count, end = self._memory.seen(name) if self._memory is not None else await self._seen(name)
        if count >= self._bad_keys:
            wait = max(1, int(end - time.time()) + 1)
            raise Refused(
                "TOO_MANY_REQUESTS_WITH_BAD_KEY",
                f"Too many requests with a bad key came from {address}. Wait {wait} seconds, and send a good one.",
                facts={"retryAfter": wait},
            )

    async def count_bad_key(self, address: str) -> None:
        """Remember that a bad key came from an address."""
        self._bad_seen = True
        name = f"bad/{_network(address)}"
        if self._memory is not None:
            self._memory.count(name, WINDOW)
        else:
            await self._ask("incr", 0, name, WINDOW)

    async def admit_key(self, public: str, limit: int) -> Allowance:
        """Count a request of a key; refuse it when the key has none left in this window."""
        if self._memory is not None:
            return _judged(limit, *self._memory.count(f"key/{public}", WINDOW))
        name = f"key/{public}"
        count = await self._ask("incr", 0, name, WINDOW)
        if count == 1 or self._resets.get(name, 0) <= time.time():  # the end of a window is asked for once
            if len(self._resets) >= _MEMORY:
                self._resets.clear()
            self._resets[name] = await self._ask("get_expiry", int(time.time()) + WINDOW, name)
        return _judged(limit, count, self._resets[name])

    async def _seen(self, name: str) -> tuple[int, float]:
        return await self._ask("get", 0, name), await self._ask("get_expiry", int(time.time()) + WINDOW, name)

    async def _ask(self, question: str, otherwise: int, *about: Any) -> int:
        """Ask Redis; when it does not answer, let the request pass: a counter that is down must not take the service down."""
        try:
            return int(await getattr(self._redis, question)(*about))
        except Exception as error:  # noqa: BLE001  # whatever Redis has
            log.warning("Requests are not counted, since Redis does not answer: %s", error)
            return otherwise

    async def close(self) -> None:
        """End the connections to Redis."""
        if self._redis is not None:
            await self._redis.bridge.storage.aclose()  # type: ignore[attr-defined]  # the client of the bridge to redis-py


def _connect_redis(storage: str) -> "RedisStorage":
    from limits.aio.storage import RedisStorage  # noqa: PLC0415  # start-up time: few services count in Redis

    return RedisStorage("async+" + storage, implementation="redispy")


def _judged(limit: int, count: int, end: float) -> Allowance:
    """Say what is left of a limit after this request; refuse it if there was nothing."""
    reset = int(end) + 1
    if count > limit:
        wait = max(1, reset - int(time.time()))
        raise Refused(
            "RATE_LIMITED",
            f"This key may send {limit} requests a minute, and has. Wait {wait} seconds.",
            facts={"retryAfter": wait, "limit": limit, "reset": reset},
        )
    return Allowance(limit, max(0, limit - count), reset)


def _network(address: str) -> str:
    """Give the unit that an address is throttled by: itself, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
