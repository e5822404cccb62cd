"""Rate limits: requests per key, and requests without a good key per address."""

import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trellis.core.networks import find_network
from trellis.errors import Refused
from trellis.rest.windows import RateWindows

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage

log = logging.getLogger(__name__)

WINDOW: Final = 60  # seconds
_ADDRESSES: Final = 10_000  # whose bad keys a process counts at a time
_MEMORY: Final = 10_000  # windows in Redis whose ends a process remembers


class Allowance(NamedTuple):
    """A key's allowance: requests per window, how many are left of this one, and when the next begins (Unix seconds)."""

    limit: int
    remaining: int
    reset: int


class Throttle:
    """Counts in fixed windows of a minute: in this process, or in Redis for all of them together."""

    def __init__(self, storage: str, bad_keys: int) -> None:
        self._memory = RateWindows() if storage == "memory://" else None
        self._redis = _connect_redis(storage) if self._memory is None else None
        self._bad_keys = bad_keys
        self._bad = RateWindows(_ADDRESSES)
        self._bad_seen = False
        self._warned_at = -math.inf
        self._ends: dict[str, float] = {}  # of windows in Redis, on the monotonic clock

    async def admit_address(self, address: str) -> None:
        """Refuse an address that has sent too many requests without a good key, until its window is over; it is never banned."""
        if self._memory is not None and not self._bad_seen:
            return
        name = f"bad/{find_network(address)}"
        count, left = self._bad.seen(name) if self._memory is not None else await self._seen(name)
        if count >= self._bad_keys:
            wait = max(1, int(left) + 1)
            raise Refused(
                "TOO_MANY_REQUESTS_WITH_BAD_KEY",
                f"Too many requests without a good key came from {address}. Wait {wait} seconds, and send a good one.",
                facts={"retryAfter": wait},
            )

    async def count_bad_key(self, address: str) -> None:
        """Remember that a request without a good key came from an address."""
        self._bad_seen = True
        name = f"bad/{find_network(address)}"
        if self._memory is not None:
            self._bad.count(name, WINDOW)
        else:
            await self._ask("incr", 0, name, WINDOW)

    async def admit_key(self, public: str, limit: int) -> Allowance:
        """Count a request of a key; refuse it when the key has none left in this window."""
        if self._memory is not None:
            return _check(limit, *self._memory.count(f"key/{public}", WINDOW))
        name = f"key/{public}"
        count = await self._ask("incr", 0, name, WINDOW)
        if count == 1 or self._ends.get(name, 0) <= time.monotonic():  # the end of a window is asked for once
            if len(self._ends) >= _MEMORY:
                self._ends.clear()
            self._ends[name] = time.monotonic() + await self._find_left(name)
        return _check(limit, count, self._ends[name] - time.monotonic())

    async def _seen(self, name: str) -> tuple[int, float]:
        return await self._ask("get", 0, name), await self._find_left(name)

    async def _find_left(self, name: str) -> float:
        """Return in how many seconds a window in Redis ends: the client adds what Redis says to this machine's clock."""
        return await self._ask("get_expiry", int(time.time()) + WINDOW, name) - time.time()

    async def _ask(self, question: str, otherwise: int, *about: Any) -> int:
        """Ask Redis; when it does not answer, let the request pass: a counter that is down must not take the service down."""
        try:
            return int(await getattr(self._redis, question)(*about))
        except Exception as error:  # noqa: BLE001  # whatever Redis has
            if (now := time.monotonic()) - self._warned_at >= WINDOW:  # not with each request: anybody can send many
                self._warned_at = now
                log.warning("Requests are not counted, since Redis does not answer: %s", error)
            return otherwise

    async def close(self) -> None:
        """End the connections to Redis."""
        if self._redis is not None:
            await self._redis.bridge.storage.aclose()  # type: ignore[attr-defined]  # the client of the bridge to redis-py


def _connect_redis(storage: str) -> "RedisStorage":
    from limits.aio.storage import RedisStorage  # noqa: PLC0415  # start-up time: few services count in Redis

    return RedisStorage("async+" + storage, implementation="redispy")


def _check(limit: int, count: int, left: float) -> Allowance:
    """Return what is left of a limit after this request. Raises Refused (RATE_LIMITED) if nothing was.

    `left` is in how many seconds the window ends.
    """
    now = time.time()
    reset = int(now + left) + 1
    if count > limit:
        wait = max(1, reset - int(now))
        raise Refused(
            "RATE_LIMITED",
            f"This key may send {limit} requests a minute, and has. Wait {wait} seconds.",
            facts={"retryAfter": wait, "limit": limit, "reset": reset},
        )
    return Allowance(limit, max(0, limit - count), reset)
