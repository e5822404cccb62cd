"""Which URLs and addresses webhooks may be sent to, judged without looking anything up."""

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Names that mean this machine or this network whatever a resolver says (RFC 6761, 6762, 8375; ICANN's .internal).
_LOCAL_NAMES: Final = re.compile(r"(^|\.)(localhost|local|internal|intranet|lan|home\.arpa|localdomain)$")
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
# Special networks that `is_global` of one Python version or another lets through.
_CLOSED: Final = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200 is a metadata service
        "168.63.129.16/32",  # the host of a virtual machine, in one big cloud
        "192.0.0.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",  # IPv4-compatible
        "64:ff9b:1::/48",  # NAT64 of one's own
        "100::/64",
        "2001::/23",  # Teredo, ORCHID and benchmarks
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_PLAIN_PORTS: Final = frozenset({80, 443})
_FIRST_FREE_PORT: Final = 1024


class NotAllowed(Exception):
    """A webhook may not go there; the text is a sentence that says where and why."""


def check_url(url: str, allowed: tuple[Network, ...]) -> None:
    """Check a URL. Raises NotAllowed; the addresses of a name are checked when they are known."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NotAllowed("is not an address that can be read.") from None
    if parts.scheme not in {"http", "https"}:
        raise NotAllowed("must begin with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise NotAllowed("must not hold a user name or a password: everybody who lists webhooks would read them.")
    if parts.fragment:
        raise NotAllowed("must not have a part behind #, which is never sent.")
    port = port if port is not None else {"http": 80, "https": 443}[parts.scheme]
    if port not in _PLAIN_PORTS and port < _FIRST_FREE_PORT:
        raise NotAllowed(f"leads to port {port}; 80, 443 and those from {_FIRST_FREE_PORT} are allowed.")
    address = _parse_literal(host)
    if address is not None:
        check_address(address, allowed)
    elif not _NAME.fullmatch(host.rstrip(".")):
        raise NotAllowed("has no host that could be one. Write names outside ASCII as xn--….")
    elif _LOCAL_NAMES.search(host.rstrip(".")) and not allowed:
        raise NotAllowed(f"leads to {host}, which is a name for this machine or this network.")


def check_address(address: Address, allowed: tuple[Network, ...]) -> Address:
    """Give the address that is really meant, out of one that is wrapped in another. Raises NotAllowed."""
    unwrapped = _unwrap(address)
    if any(one in network for network in allowed for one in {address, unwrapped} if one.version == network.version):
        return unwrapped
    closed = any(unwrapped in network for network in _CLOSED if network.version == unwrapped.version)
    if closed or not unwrapped.is_global or unwrapped.is_multicast or unwrapped.is_reserved or unwrapped.is_link_local:
        raise NotAllowed(f"leads to {address}, which is not on the open internet. The operator can allow it.")
    return unwrapped


def _unwrap(address: Address) -> Address:
    """Unwrap an IPv4 address from the forms in which IPv6 carries one: mapped, 6to4, NAT64."""
    if isinstance(address, IPv6Address):
        if inner := address.ipv4_mapped or address.sixtofour:
            return inner
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _parse_literal(host: str) -> Address | None:
    """Read a host that is an address, in the old spellings too: 2130706433, 0x7f.1, 0177.0.0.1."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host.rstrip("."))) if re.fullmatch(r"[0-9a-fx.]+", host) else None
    except OSError:
        return None
