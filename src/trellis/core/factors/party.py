"""The relying party of passkeys: the address that they are valid for, which is the public address of the service."""

from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_LOCAL: Final = "localhost"


class Party(NamedTuple):
    """What passkeys are created for: a host, and the origin that a browser must report."""

    host: str
    origin: str


def find_party(public_url: str | None) -> Party | None:
    """Return the relying party of a service; None if browsers create no passkeys for its public address, or if it has none."""
    url = urlsplit(public_url or "")
    host = (url.hostname or "").rstrip(".")
    if not host or not (url.scheme == "https" or host == _LOCAL) or _is_address(host):
        return None
    try:
        port = url.port
    except ValueError:
        return None
    told = "" if port in (None, _DEFAULT_PORTS.get(url.scheme)) else f":{port}"
    return Party(host, f"{url.scheme.lower()}://{host}{told}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
