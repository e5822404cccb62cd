"""Addresses of callers, and the networks by which callers without a key are counted and slowed down."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, ip_address, ip_network
from typing import Final

_MAPPED: Final = "::ffff:"  # the prefix of IPv4 addresses in IPv6 (RFC 4291, 2.5.5.2)
_FORM: Final = re.compile(r"[!-~]{1,100}")  # of what can be an address, or a name that stands for one
_UNREADABLE: Final = "unreadable address"


def write_plain(address: str) -> str:
    """Return the IPv4 address for one that a dual-stack socket, here or of a proxy, reports as `::ffff:192.0.2.7`.

    Any other address is unchanged.
    """
    if not address.lower().startswith(_MAPPED):
        return address
    try:
        return str(IPv6Address(address).ipv4_mapped or address)
    except ValueError:
        return address


def list_forms(networks: Iterable[str]) -> Iterator[str]:
    """Return networks in each form in which a proxy may report their addresses: those of IPv4 in IPv6 as well."""
    for network in (ip_network(text, strict=False) for text in networks):
        yield str(network)
        if isinstance(network, IPv4Network):
            yield f"{_MAPPED}{network.network_address}/{96 + network.prefixlen}"


@lru_cache(1000)  # parsing an IPv6 address takes longer than the rest of a read from memory
def find_network(address: str) -> str:
    """Return the address itself, or the /64 network of an IPv6 address: one caller can use any number of addresses in its /64.

    A proxy may pass on anything that a caller has sent as an address. What cannot be one counts as one and the same.
    """
    if not _FORM.fullmatch(address):
        return _UNREADABLE
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))


def is_address_allowed(address: str, networks: Iterable[str]) -> bool:
    """Return whether an address is in one of the networks."""
    try:
        caller = ip_address(address)
    except ValueError:
        return False
    if isinstance(caller, IPv6Address) and caller.ipv4_mapped:
        caller = caller.ipv4_mapped
    return any(caller in ip_network(network) for network in networks)
