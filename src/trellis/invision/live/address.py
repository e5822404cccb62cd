"""Checking the address of a community, and whether it leads to a private network."""

import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from httpx import URL, InvalidURL

from trellis.core.fields import quote
from trellis.invision.answers import HELLO, ReadingFailed
from trellis.settings import is_local

_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


def check_url(url: str, *, plain: bool = False) -> str:
    """Return the address of a community without the path of its API. `plain` allows http. Raises ReadingFailed if it is invalid."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        asked = URL(url)
        _, _ = asked.host, asked.raw_host.decode("ascii").encode("idna")  # fails for a host such as a..b
    except (ValueError, InvalidURL):
        host, parts = "", urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:
        raise ReadingFailed(
            f"{quote(url)} is not an address. Give that of the community's front page, such as https://example.com/."
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ReadingFailed("The address must have no user, password, query or fragment: give that of the community's front page.")
    if parts.scheme == "http" and not plain and not is_local(host):
        raise ReadingFailed(
            f"The key would be sent to {host} unencrypted, so that anybody on the network could read it. Give the address with "
            "https://, or pass --plain-http if the network is your own."
        )
    path = parts.path.rstrip("/").removesuffix("/index.php").removesuffix("/" + HELLO).removesuffix("/api").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def find_private_address(url: str) -> str | None:
    """Return an address of a URL's host that is not on the public internet; None if there is none, or if it cannot be resolved."""
    try:
        found = socket.getaddrinfo(urlsplit(url).hostname, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = [str(one[4][0]).partition("%")[0] for one in found]
    return next((one for one in addresses if not ip_address(one).is_global), None)


def find_origin(url: str) -> str:
    """Return the scheme, host and port of a URL, without the port if it is the default. Raises ValueError if the URL is invalid."""
    parts = urlsplit(url)
    port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"
