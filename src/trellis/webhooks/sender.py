"""The sender, which makes one attempt to send one message, and describes the outcome for people."""

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Final

import httpx

from trellis import __version__
from trellis.core.webhooks import NotAllowed, redact_secrets
from trellis.retry_after import parse_retry_after
from trellis.sentences import say
from trellis.store.webhooks import reasons
from trellis.webhooks.guard import Guard, Transport
from trellis.webhooks.retries import Result

TIMEOUT: Final = 15.0  # seconds for everything: DNS lookup, connection, request and response
_MOST_READ: Final = 64 * 1024  # bytes of a response
_MOST_KEPT: Final = 4 * 1024  # characters of a response to log
_MOST_QUOTED: Final = 500  # characters of a library's error message, which may quote all headers of a response
_USER_AGENT: Final = f"Trellis/{__version__}"


class Sender:
    """Sends messages over guarded connections. `timeout` is in seconds per message, `tls` sets the trusted certificates."""

    def __init__(self, guard: Guard, timeout: float = TIMEOUT, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._tls = tls
        self._transport: Transport | None = None
        self._timeout = timeout

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Result:
        """Send a message, and return the outcome. Raises nothing except CancelledError."""
        try:
            self._transport = self._transport or Transport(self._guard, self._tls)
        except OSError as failed:  # tried again with the next message, since the certificates may be about to be replaced
            return Result(0, error=say(reasons.NO_CERTIFICATES, reason=failed), reached=False)
        started = time.monotonic()
        received = _Received()
        error: str | None = None
        try:
            self._guard.check_url(url)
            async with asyncio.timeout(self._timeout):
                await _post(self._transport, url, headers, body, received)
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
        return Result(
            duration=round((time.monotonic() - started) * 1000),
            status=received.status,
            error=error,
            answer=received.text(),
            retry_after=received.retry_after,
            reached=received.reached,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._transport is not None:
            await self._transport.aclose()


async def _post(transport: Transport, url: str, headers: Mapping[str, str], body: bytes, received: "_Received") -> None:
    target = httpx.URL(url)
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
        """Take note of an event of the HTTP client: of the first one of the conversation over a connection."""
        self.reached = self.reached or event.startswith("http11.")

    def text(self) -> str | None:
        """Return the beginning of the body as text for people, without control characters and secrets; None without a response."""
        if self.status is None:
            return None
        text = self.body[: 4 * _MOST_KEPT].decode("utf-8", "replace")[:_MOST_KEPT]
        return redact_secrets("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text))
