"""The connections of a port, and how many of them one caller may have."""

import asyncio

from trellis.cli.limits.connections import Connections


class Idle:
    """A connection that is never closed."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()

    def check(self, now: float) -> None:
        assert now


def test_the_addresses_of_an_ipv6_network_share_half_of_the_places() -> None:
    """One caller can use any number of addresses in its /64."""
    addresses = "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1", "::ffff:192.0.2.7"

    async def admit() -> list[bool]:
        connections, made = Connections(4, ()), [Idle() for _ in addresses]
        admitted = [connections.add(one, address) for one, address in zip(made, addresses, strict=True)]
        connections.discard(made[2], addresses[2])  # it was refused
        connections.discard(made[0], addresses[0])
        return [*admitted, connections.add(made[2], addresses[2])]

    assert asyncio.run(admit()) == [True, True, False, True, True, True]
