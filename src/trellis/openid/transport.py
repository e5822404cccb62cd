"""Requests to a provider: each is limited in seconds and in bytes, whatever the other side does."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import orjson

from trellis import __version__
from trellis.openid.errors import ProviderUnavailable
from trellis.sentences import say

SECONDS: Final = 10.0  # for everything: DNS lookup, connection, request and response
MOST_BYTES: Final = 256 * 1024  # of a response
HEADERS: Final = {"user-agent": f"Trellis/{__version__}", "accept": "application/json", "accept-encoding": "identity"}


class BoundedTransport(httpx.AsyncBaseTransport):
    """Reads the whole of each response, up to a size."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=tls)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        try:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise ProviderUnavailable(say("Its answer is compressed, although it was asked not to compress it."))
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > MOST_BYTES:
                    raise ProviderUnavailable(say("Its answer is larger than {size} KiB.", size=MOST_BYTES // 1024))
        finally:
            await response.aclose()
        return httpx.Response(response.status_code, headers=response.headers, content=bytes(body))

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def bounded() -> AsyncIterator[None]:
    """Give up after some seconds, and turn connection errors into ProviderUnavailable."""
    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError:
        raise ProviderUnavailable(say("It sent no complete answer within {seconds:g} seconds.", seconds=SECONDS)) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:  # the last one for a host that is no name in IDNA
        reason = str(error)[:200] or type(error).__name__
        raise ProviderUnavailable(say("The connection failed: {reason}.", reason=reason.rstrip("."))) from None


def read_object(response: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object in a good response. Raises ProviderUnavailable."""
    path = response.request.url.path
    if response.status_code != 200:
        raise ProviderUnavailable(say("{path} answered with status {status}.", path=path, status=response.status_code))
    try:
        value = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ProviderUnavailable(say("{path} did not answer with a JSON object.", path=path))
    return value
