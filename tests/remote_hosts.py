"""No test reaches another machine."""

from contextlib import suppress
from ipaddress import ip_address
from typing import Any


def refuse_remote_hosts(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every connection that would leave this machine: an audit hook."""
    if event == "socket.connect":
        host = arguments[1][0] if isinstance(arguments[1], tuple) else None  # or else a Unix socket
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode()
    if not isinstance(host, str) or host in {"", "localhost"}:
        return
    with suppress(ValueError):
        if ip_address(host).is_loopback or ip_address(host).is_unspecified:
            return
    raise RuntimeError(f"A test wanted to reach {host}. Tests stay on this machine.")
