"""The sender, which makes one attempt to send one message, and describes the outcome for people."""

import asyncio
import math
import socket
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx

from trellis import __version__
from trellis.core.webhooks import NotAllowed, redact_secrets
from trellis.retry_after import parse_retry_after
from trellis.sentences import say
from trellis.store.webhooks import reasons
from trellis.webhooks.guard import KEEPALIVE, Guard, Transport
from trellis.webhooks.retries import AttemptResult

TIMEOUT: Final = 15.0  # seconds for everything: DNS lookup, connection, request and response
_MOST_READ: Final = 64 * 1024  # bytes of a response
_MOST_KEPT: Final = 4 * 1024  # characters of a response to log
_MOST_QUOTED: Final = 500  # characters of a library's error message, which may quote all headers of a response
_USER_AGENT: Final = f"Trellis/{__version__}"


class Sender:
    """Sends messages over guarded connections. `timeout` is in seconds per message, `tls` sets the trusted certificates.

    Each attempt has a connection to itself, which is kept for the next one to the same server if it was not cut off: httpcore loses
    one that is cancelled between connecting and sending, and with it a place in the pool that it is from.
    """

    def __init__(self, guard: Guard, timeout: float = TIMEOUT, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._tls = tls
        self._idle: defaultdict[str, list[tuple[float, Transport]]] = defaultdict(list)  # by server, with when they were used last
        self._timeout = timeout

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> AttemptResult:
        """Send a message, and return the outcome. Raises nothing except CancelledError."""
        try:
            self._tls = self._tls or httpx.create_ssl_context()
        except OSError as failed:  # tried again with the next message, since the certificates may be about to be replaced
            return AttemptResult(0, error=say(reasons.NO_CERTIFICATES, reason=failed), reached=False)
        started = time.monotonic()
        received = _Received()
        error: str | None = None
        try:
            self._guard.check_url(url)
            target = httpx.URL(url)
            async with asyncio.timeout(self._timeout), self._lend(target, self._tls) as transport:
                await _post(transport, target, headers, body, received)
        except NotAllowed as reason:
            error = say(reasons.NOT_ALLOWED, reason=reason)
        except TimeoutError:
            error = say(reasons.TIMED_OUT, seconds=f"{self._timeout:g}")
        except (httpx.ConnectError, httpx.ConnectTimeout) as failed:
            error = say(reasons.NOT_CONNECTED, reason=_quote(failed) or reasons.TOOK_TOO_LONG)
        except socket.gaierror as failed:
            error = say(reasons.NOT_RESOLVED, reason=failed.strerror or failed)
        except (httpx.TransportError, httpx.InvalidURL, OSError) as failed:
            error = say(reasons.INTERRUPTED, reason=_quote(failed) or type(failed).__name__)
        return AttemptResult(
            duration=round((time.monotonic() - started) * 1000),
            status=received.status,
            error=error,
            answer=received.text(),
            retry_after=received.retry_after,
            reached=received.reached,
        )

    @asynccontextmanager
    async def _lend(self, target: httpx.URL, tls: ssl.SSLContext) -> AsyncIterator[Transport]:
        """Lend a transport to one attempt; close it if the attempt does not come to its end."""
        await self._close_idle(since=time.monotonic() - KEEPALIVE)
        server = f"{target.scheme}://{target.netloc.decode()}"
        transport = self._idle[server].pop()[1] if self._idle[server] else Transport(self._guard, tls)
        try:
            yield transport
        except BaseException:
            await _close(transport)
            raise
        self._idle[server].append((time.monotonic(), transport))

    async def _close_idle(self, since: float) -> None:
        """Close the connections that were used last before a time on the monotonic clock."""
        idle, self._idle = self._idle, defaultdict(list)
        old: list[Transport] = []
        for server, kept in idle.items():
            old += [transport for used, transport in kept if used < since]
            if young := [one for one in kept if one[0] >= since]:
                self._idle[server] = young
        await _close(*old)

    async def close(self) -> None:
        """Close the connections."""
        await self._close_idle(since=math.inf)


async def _close(*transports: Transport) -> None:
    """Close connections, also if the attempt that does so is cut off."""
    await asyncio.shield(asyncio.gather(*(transport.aclose() for transport in transports), return_exceptions=True))


async def _post(transport: Transport, target: httpx.URL, headers: Mapping[str, str], body: bytes, received: "_Received") -> None:
    own = {
        "host": target.netloc.decode(),  # otherwise httpx would decode the name, and fail if IDNA 2008 does not allow it
        "content-type": "application/json",
        "user-agent": _USER_AGENT,
        "accept-encoding": "identity",
    }
    request = httpx.Request("POST", target, headers={**own, **headers}, content=body, extensions={"trace": received.note})
    response = await transport.handle_async_request(request)
    try:
        received.status = response.status_code
        received.retry_after = parse_retry_after(response.headers.get("retry-after"))
        async for part in response.aiter_raw():
            received.body += part[: _MOST_READ - len(received.body)]
            if len(received.body) >= _MOST_READ:
                break
    finally:
        await response.aclose()


def _quote(failed: Exception) -> str:
    """Return the beginning of a library's error message, without secrets. It may quote what the endpoint sent."""
    text = str(failed)
    return redact_secrets(text[:_MOST_QUOTED]) + "…" * (len(text) > _MOST_QUOTED)


class _Received:
    """The part of a response that has been received so far. `reached` is True once there is a connection."""

    def __init__(self) -> None:
        self.reached = False
        self.status: int | None = None
        self.retry_after = 0.0
        self.body = b""

    async def note(self, event: str, _: object) -> None:
        """Record an event of the HTTP client: the first one of the conversation over a connection."""
        self.reached = self.reached or event.startswith("http11.")

    def text(self) -> str | None:
        """Return the beginning of the body as text for people, without control characters and secrets; None without a response."""
        if self.status is None:
            return None
        text = self.body[: 4 * _MOST_KEPT].decode("utf-8", "replace")[:_MOST_KEPT]
        return redact_secrets("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text))
