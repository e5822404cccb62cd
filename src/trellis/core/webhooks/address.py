"""Which URLs and addresses webhooks may be sent to, decided without DNS lookups."""

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from trellis.sentences import say
from trellis.store.webhooks import reasons

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Names that always mean this machine or this network (RFC 6761, 6762, 8375; ICANN's .internal).
_LOCAL_NAMES: Final = re.compile(r"(^|\.)(localhost|local|internal|intranet|lan|home\.arpa|localdomain)$")
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
# A host and perhaps a port. Without this, `[::1]25` would have no port for `urlsplit`, but port 25 for the client that sends.
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(:[0-9]*)?", re.ASCII)
# Special networks that `is_global` reports as global in some Python versions.
_CLOSED: Final = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200 is a metadata service
        "168.63.129.16/32",  # the host of a virtual machine on Azure
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",  # IPv4-compatible
        "64:ff9b:1::/48",  # local NAT64
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
    """Raised if a webhook may not be sent to a URL or an address. The text completes a sentence, and says where and why."""


def check_url(url: str, allowed: tuple[Network, ...], hosts: tuple[str, ...] = (), *, https_only: bool = False) -> None:
    """Check a URL. If there are `hosts`, its host must be one of them; with `https_only`, it must begin with https.

    Raises NotAllowed. The addresses of a host name are checked after it is resolved.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NotAllowed(say("is not a valid URL.")) from None
    _check_scheme(parts.scheme, https_only=https_only)
    if parts.username is not None or parts.password is not None:
        raise NotAllowed(say("must not contain a user name or a password: everybody who can list webhooks would see them."))
    if parts.fragment:
        raise NotAllowed(say("must not have a fragment (#…), which is never sent."))
    if not _AUTHORITY.fullmatch(parts.netloc):
        raise NotAllowed(say("is not a valid URL."))
    port = port if port is not None else {"http": 80, "https": 443}[parts.scheme]
    if port not in _PLAIN_PORTS and port < _FIRST_FREE_PORT:
        raise NotAllowed(
            say(
                "uses port {port}, which is not allowed: use 80, 443, or {first} and above.",
                port=port,
                first=_FIRST_FREE_PORT,
            )
        )
    address = _parse_literal(host)
    if address is not None:
        check_address(address, allowed)
    elif parts.netloc.startswith("[") or not _NAME.fullmatch(host.rstrip(".")):  # not [v1.a] either: no client can send there
        raise NotAllowed(say("has no valid host. Write names with non-ASCII characters as xn--…."))
    elif _LOCAL_NAMES.search(host.rstrip(".")) and not allowed:
        raise NotAllowed(say(reasons.LOCAL_NAME, host=host, how=say(reasons.HOW_TO_ALLOW)))
    if hosts and not _is_listed(host.rstrip("."), hosts):
        raise NotAllowed(say(reasons.NOT_LISTED, host=host))


def _check_scheme(scheme: str, *, https_only: bool) -> None:
    if scheme not in {"http", "https"}:
        raise NotAllowed(say("must begin with https:// or http://."))
    if https_only and scheme != "https":
        raise NotAllowed(say(reasons.NO_TLS))


def _is_listed(host: str, hosts: tuple[str, ...]) -> bool:
    """Return whether a host is in a list, or below an entry that begins with `*.`."""
    return any(host == listed or (listed.startswith("*.") and host.endswith(listed[1:])) for listed in hosts)


def check_address(address: Address, allowed: tuple[Network, ...]) -> Address:
    """Check an address and return the one to connect to: itself, or the one inside a mapped or 6to4 address. Raises NotAllowed.

    A NAT64 address is returned as it is, though the address inside is checked: a machine without IPv4 has no other way to that.
    """
    unwrapped = _unwrap(address)
    target = address if _is_nat64(address) else unwrapped
    if any(one in network for network in allowed for one in {address, unwrapped} if one.version == network.version):
        return target
    closed = any(unwrapped in network for network in _CLOSED if network.version == unwrapped.version)
    if closed or not unwrapped.is_global or unwrapped.is_multicast or unwrapped.is_reserved or unwrapped.is_link_local:
        raise NotAllowed(say(reasons.LOCAL_ADDRESS, address=address, how=say(reasons.HOW_TO_ALLOW)))
    return target


def _unwrap(address: Address) -> Address:
    """Extract an IPv4 address that is embedded in an IPv6 address: mapped, 6to4, NAT64."""
    if isinstance(address, IPv6Address):
        if inner := address.ipv4_mapped or address.sixtofour:
            return inner
        if _is_nat64(address):
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_nat64(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address in _NAT64


def _parse_literal(host: str) -> Address | None:
    """Parse a host that is an address, including the old notations: 2130706433, 0x7f.1, 0177.0.0.1."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host.rstrip("."))) if re.fullmatch(r"[0-9a-fx.]+", host) else None
    except OSError:
        return None
