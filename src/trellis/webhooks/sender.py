"""One attempt to send one message: what came of it, in words for people."""

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import httpx

from trellis import __version__
from trellis.core.webhooks import NotAllowed, redact_secrets
from trellis.webhooks.guard import Guard, Transport

PATIENCE: Final = 15.0  # seconds for everything: the lookup, the connection, the request and the answer
MOST_READ: Final = 64 * 1024  # bytes of an answer
_MOST_KEPT: Final = 4 * 1024  # characters of it that are logged
_LONGEST_RETRY_AFTER: Final = 24 * 3600  # seconds
_USER_AGENT: Final = f"Trellis/{__version__}"


class Result(NamedTuple):
    """What came of an attempt. `duration` is in milliseconds, `retry_after` in seconds, as the endpoint asked.

    `reached` is false where there was not even a connection: then it cannot have been the message's fault. `unsendable` says
    that nothing was sent, and that nothing can be sent later either.
    """

    duration: int
    status: int | None = None
    error: str | None = None
    answer: str | None = None
    retry_after: float = 0.0
    reached: bool = True
    unsendable: bool = False

    @property
    def delivered(self) -> bool:
        """Whether it was answered with success. An answer that broke off is none."""
        return self.error is None and self.status is not None and 200 <= self.status < 300


class Sender:
    """Sends messages over guarded connections. `patience` is for how many seconds one may take, `tls` whom to trust."""

    def __init__(self, guard: Guard, patience: float = PATIENCE, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._transport = Transport(guard, tls)
        self._patience = patience

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Result:
        """Send a message. Never raises but when it is called off."""
        started = time.monotonic()
        answer = _Answer()
        error: str | None = None
        reached = True
        try:
            self._guard.judge(url)
            async with asyncio.timeout(self._patience):
                await self._exchange(url, headers, body, answer)
        except NotAllowed as reason:
            error, reached = f"The address {reason}", False
        except TimeoutError:
            error = f"There was no whole answer within {self._patience:g} seconds."
        except (httpx.ConnectError, httpx.ConnectTimeout) as failed:
            error, reached = f"There was no connection: {str(failed) or 'it took too long.'}", False
        except socket.gaierror as failed:
            error, reached = f"There was no address: {failed.strerror or failed}", False
        except (httpx.TransportError, httpx.InvalidURL, OSError) as failed:
            error = f"The exchange broke off: {str(failed) or type(failed).__name__}"
        return Result(
            duration=round((time.monotonic() - started) * 1000),
            status=answer.status,
            error=error,
            answer=answer.text(),
            retry_after=answer.retry_after,
            reached=reached,
        )

    async def _exchange(self, url: str, headers: Mapping[str, str], body: bytes, answer: "_Answer") -> None:
        sent = {"content-type": "application/json", "user-agent": _USER_AGENT, "accept-encoding": "identity", **headers}
        response = await self._transport.handle_async_request(httpx.Request("POST", url, headers=sent, content=body))
        try:
            answer.status = response.status_code
            answer.retry_after = seconds_of(response.headers.get("retry-after"))
            async for part in response.aiter_raw():
                answer.body += part[: MOST_READ - len(answer.body)]
                if len(answer.body) >= MOST_READ:
                    break
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Let the connections go."""
        await self._transport.aclose()


class _Answer:
    """What has come of an answer so far."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.retry_after = 0.0
        self.body = b""

    def text(self) -> str | None:
        """Give its beginning as text without control characters, for people to read."""
        if self.status is None:
            return None
        text = self.body[: 4 * _MOST_KEPT].decode("utf-8", "replace")[:_MOST_KEPT]
        return redact_secrets("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text))


def seconds_of(retry_after: str | None) -> float:
    """Read Retry-After: seconds, or a moment. What makes no sense is nothing, and a day is the most."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), _LONGEST_RETRY_AFTER))
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    ahead = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(0.0, ahead), _LONGEST_RETRY_AFTER)
