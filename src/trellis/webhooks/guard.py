"""The guard, which resolves a host name once, checks all its addresses, and connects to one of the checked addresses."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final

import httpcore
import httpx

from trellis.core.webhooks import Address, Network, NotAllowed, check_address, check_url
from trellis.sentences import say
from trellis.store.webhooks import reasons

Resolve = Callable[[str, int], Awaitable[list[str]]]

KEEPALIVE: Final = 4.0  # seconds; many servers close a connection that was idle for 5
_ADDRESSES_TRIED: Final = 3  # addresses of one name
_CONNECT_SECONDS: Final = 4.0


class Guard:
    """Decides where webhooks may be sent, by the rules of `check_url`. `resolve` returns the addresses of a host name, as text."""

    def __init__(
        self,
        allowed: tuple[Network, ...] = (),
        resolve: Resolve | None = None,
        hosts: tuple[str, ...] = (),
        *,
        https_only: bool = False,
    ) -> None:
        self._allowed = allowed
        self._hosts = hosts
        self._https_only = https_only
        self._resolve = resolve or resolve_name

    def check_url(self, url: str) -> None:
        """Check a URL without resolving its host. Raises NotAllowed."""
        check_url(url, self._allowed, self._hosts, https_only=self._https_only)

    async def find_addresses(self, host: str, port: int) -> list[Address]:
        """Return the addresses to connect to. Raises NotAllowed if one of them is not allowed, OSError if there is none."""
        try:
            literal = ip_address(host)
        except ValueError:
            found = await self._resolve(host, port)
        else:
            found = [str(literal)]
        if not found:
            raise OSError(say(reasons.NO_ADDRESS, host=host))
        return [check_address(ip_address(text.partition("%")[0]), self._allowed) for text in found]


class _Backend(httpcore.AsyncNetworkBackend):
    """Opens connections to checked addresses only. TLS and the Host header still use the host name."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        del timeout
        addresses = await self._guard.find_addresses(host, port)
        failed: Exception = OSError(say(reasons.NO_ADDRESS, host=host))
        for address in addresses[:_ADDRESSES_TRIED]:
            try:
                return await self._inner.connect_tcp(str(address), port, _CONNECT_SECONDS, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise NotAllowed(say(reasons.LOCAL_SOCKET))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Transport(httpx.AsyncHTTPTransport):
    """httpx's transport over one guarded connection. It ignores the environment's proxy settings."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, max_connections=1, keepalive_expiry=KEEPALIVE, network_backend=_Backend(guard)
        )


async def resolve_name(host: str, port: int) -> list[str]:
    """Resolve a host name with the system's resolver, in a daemon thread: a lookup cannot be cancelled. Raises OSError."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[str]] = loop.create_future()

    def settle(found: list[str] | None, error: OSError | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found or [])

    def ask() -> None:
        found: list[str] | None = None
        failed: OSError | None = None
        try:
            found = list(dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except (OSError, UnicodeError) as error:
            failed = error if isinstance(error, OSError) else OSError(str(error))
        try:
            loop.call_soon_threadsafe(settle, found, failed)
        except RuntimeError:
            return  # the loop has ended meanwhile

    try:
        threading.Thread(target=ask, name="trellis-lookup", daemon=True).start()
    except RuntimeError as error:  # the system has no room for another thread
        raise OSError(str(error)) from None
    return await future
