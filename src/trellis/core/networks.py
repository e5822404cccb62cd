"""The unit by which callers without a key are counted and slowed down: an address, or the network of an IPv6 address."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_network


@lru_cache(1000)  # parsing an IPv6 address takes longer than the rest of a read from memory
def find_network(address: str) -> str:
    """Return the address itself, or the /64 network of an IPv6 address: one caller has as many as it likes of those in it."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
