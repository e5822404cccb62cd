"""The connections of one port: how many there are, whose they are, and how long they have taken."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Final, Protocol

from trellis.core.networks import find_network

_REFUSALS: Final = 32  # refused connections that linger at a time
_TICK: Final = 0.5  # seconds between two checks of all connections

log = logging.getLogger(__name__)


class TimedConnection(Protocol):
    """A connection that can be checked."""

    loop: asyncio.AbstractEventLoop

    def check(self, now: float) -> None:
        """Close it if it has taken too long."""


class Connections:
    """The connections of one port: counted, and checked twice a second, which costs less than a timer for each.

    At most `most` are admitted; `proxies` are the networks that are trusted.
    """

    def __init__(self, most: int, proxies: Sequence[str]) -> None:
        self._most = most
        self._admitted: set[TimedConnection] = set()
        self._refused: set[TimedConnection] = set()
        self._by_network: Counter[str] = Counter()
        self._proxies = [ip_network(proxy, strict=False) for proxy in proxies]
        self._watching = False
        self._warned = False
        self.ending = False

    def add(self, connection: TimedConnection, address: str) -> bool:
        """Count a new connection; return False if there is no place for it.

        An address, or the network of an IPv6 address, gets at most half of the places, unless it is a trusted proxy's, so that no
        single caller can take them all.
        """
        if not self._watching:
            self._watching = True
            connection.loop.call_later(_TICK, self._check_all, connection.loop)
        share, network = max(1, self._most // 2), find_network(address)
        if len(self._admitted) < self._most and (self._by_network[network] < share or self._is_proxy(address)):
            self._admitted.add(connection)
            self._by_network[network] += 1
            return True
        return False

    def may_linger(self, connection: TimedConnection) -> bool:
        """Return whether a refused connection may stay open until the caller has read why."""
        if connection not in self._admitted and len(self._refused) >= _REFUSALS:
            return False
        self._refused.add(connection)
        return True

    def discard(self, connection: TimedConnection, address: str) -> None:
        """Forget a connection that has ended."""
        self._refused.discard(connection)
        network = find_network(address)
        if connection in self._admitted:
            self._admitted.discard(connection)
            self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]

    def check_forwarding(self, headers: list[tuple[bytes, bytes]], address: str) -> None:
        """Warn once if a request was forwarded by an untrusted proxy: then all callers behind it have its address."""
        if not self._warned and b"x-forwarded-for" in dict(headers) and not self._is_proxy(address):
            self._warned = True
            log.warning(
                "A request from %s has the header X-Forwarded-For, which is not trusted. If that is your proxy, add it to "
                "TRELLIS_TRUSTED_PROXIES: otherwise all callers behind it share one address and its limits. This is said once.",
                address,
            )

    def _is_proxy(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._proxies)
        except ValueError:  # a socket without addresses
            return False

    def _check_all(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in tuple(self._admitted):
            connection.check(now)
        loop.call_later(_TICK, self._check_all, loop)
