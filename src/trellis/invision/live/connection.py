"""The connection to a community: one request at a time. Answers are limited in seconds and in bytes, whatever the server does."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, NamedTuple

import httpx
import orjson

from trellis import __version__
from trellis.invision.answers import ReadingFailed
from trellis.invision.live.decompress import Decompressor
from trellis.settings import is_this_machine

MOST_BYTES: Final = 32 * 2**20  # of one answer; releases that send all records at once need about 5 MiB for 10,000 forums
MOST_IN_ALL: Final = 256 * 2**20  # of all answers, which are kept in memory until they are written
_WHOLE_ANSWER: Final = 120.0  # seconds for everything: DNS lookup, connection, request and answer
_CONNECT: Final = 10.0
_MOST_QUOTED: Final = 300  # characters of a library's error message, which may quote all headers of an answer


def tell_seconds(seconds: float) -> str:
    """Return a number of seconds in words."""
    return "1 second" if seconds == 1 else f"{seconds:,g} seconds"


class Unreachable(Exception):
    """A request had no usable answer. The text says why, as the rest of a sentence."""


class Answer(NamedTuple):
    """An answer of the community, without the key if it repeated it. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LiveConnection:
    """Sends requests with the key. `timeout` is in seconds without a byte.

    Raises ReadingFailed if the environment names a proxy or certificates that cannot be used.
    """

    def __init__(self, url: str, key: str, timeout: float) -> None:
        self._timeout = timeout
        self._whole = max(_WHOLE_ANSWER, timeout)
        self._read = 0
        token = b64encode(f"{key}:".encode()).decode()
        self._secrets = tuple(dict.fromkeys(form for secret in (token.rstrip("="), key) for form in _list_forms(secret)))
        headers = {
            "authorization": f"Basic {token}",
            "user-agent": f"Trellis/{__version__}",
            "accept": "application/json",
            "accept-encoding": "gzip",
        }
        limits = httpx.Timeout(timeout, connect=min(_CONNECT, timeout))
        # The environment may name a proxy, which could read http requests that are meant for this machine.
        by_environment = not is_this_machine(url)
        # Cookies add up with each answer, and httpx sends none with letters outside of ASCII; the API needs none.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        try:
            self._client = httpx.AsyncClient(headers=headers, cookies=cookies, timeout=limits, trust_env=by_environment)
        except (httpx.InvalidURL, ImportError, OSError, ValueError) as error:  # proxies and certificates are from the environment
            raise ReadingFailed(
                f"The proxy or the certificates that the environment names cannot be used: {str(error).rstrip('.')}. See "
                "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR; a proxy has to be one of HTTP."
            ) from None
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """Close the connection."""
        with self._runner:
            self._runner.run(self._client.aclose())

    def ask(self, url: str) -> Answer:
        """Send a request. Raises Unreachable, and ReadingFailed if the answer, or all of them together, are too large."""
        try:
            return self._runner.run(self._ask(url))
        except httpx.TimeoutException:
            raise Unreachable(f"it sent nothing for {tell_seconds(self._timeout)}") from None
        except TimeoutError:
            raise Unreachable(f"an answer was not complete within {tell_seconds(self._whole)}") from None
        except (httpx.RequestError, httpx.InvalidURL, OSError) as error:
            cause = _find_cause(error) if isinstance(error, httpx.NetworkError) else error
            reason = self.hide_key(str(cause).rstrip(".") or type(cause).__name__)
            raise Unreachable(reason[:_MOST_QUOTED] + "…" * (len(reason) > _MOST_QUOTED)) from None

    def hide_key(self, text: str) -> str:
        """Replace the key in a text, so that it is neither saved nor shown if the community repeats it."""
        for secret in self._secrets:
            text = text.replace(secret, "(key)")
        return text

    async def _ask(self, url: str) -> Answer:
        body, sent = bytearray(), 0
        async with asyncio.timeout(self._whole), self._client.stream("GET", url) as response:
            decompressor = Decompressor(response.headers.get("content-encoding", ""), MOST_BYTES + 1)
            async for part in response.aiter_raw():
                sent += len(part)
                body += decompressor.read(part)
                if max(sent, len(body)) > MOST_BYTES:
                    raise ReadingFailed(f"An answer is larger than {MOST_BYTES >> 20} MiB. Ask for less at once with --per-page.")
            if sent:
                decompressor.end()
        self._read += len(body)
        if self._read > MOST_IN_ALL:
            raise ReadingFailed(
                f"The answers have more than {MOST_IN_ALL >> 20} MiB in all. Read one section after the other, with --section."
            )
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"(key)")
        return Answer(response.status_code, {name: self.hide_key(value) for name, value in response.headers.items()}, bytes(body))


def _find_cause(error: BaseException) -> BaseException:
    """Return why a connection failed; if several addresses were tried, the first of them."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return _find_cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _list_forms(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret may be in an answer: as it is, and as JSON, in which PHP puts a backslash before `/`."""
    yield secret
    escaped = orjson.dumps(secret).decode()[1:-1]
    yield from (escaped, escaped.replace("/", "\\/"))
