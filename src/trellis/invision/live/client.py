"""The client for the REST API of a live community. It limits its rate, and gives up with a sentence that explains what to do."""

import re
import time
from collections.abc import Callable, Mapping
from html import unescape
from typing import Any, Final, NamedTuple
from urllib.parse import quote as quote_url
from urllib.parse import urljoin

import orjson

from trellis.core.fields import quote
from trellis.invision.answers import Parser, ReadingFailed
from trellis.invision.live.address import find_origin
from trellis.invision.live.connection import Answer, LiveConnection, Unreachable, tell_seconds
from trellis.retry_after import parse_retry_after

_LONGEST_PAUSE: Final = 15 * 60.0
_MOST_PAUSES: Final = 10  # pauses before one answer, even if the community asks for each of them
_PAUSES: Final = (30.0, 60.0, 120.0, 240.0)  # seconds after a 429 without a time
_RETRIES: Final = (2.0, 5.0, 15.0)  # seconds after a failure of the server or of the network
_MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_PATH_FORMS: Final = ("/api/{}?", "/api/index.php?/{}&")  # the second one if the web server rewrites no paths
_TAG: Final = re.compile(r"<[^<>]*>")
_READ: Final = 4096  # bytes of a page, from which its first words are taken
_sleep: Callable[[float], None] = time.sleep
_clock: Callable[[], float] = time.monotonic


class _Refusal(NamedTuple):
    """Advice on a refusal. If `is_about_path`, the same key may still read other paths."""

    advice: str
    is_about_path: bool = False


_REFUSALS: Final[Mapping[str, _Refusal]] = {
    "INVALID_API_KEY": _Refusal(
        "The community does not know the key. Check that the file contains the whole key, and that it is a key of this community."
    ),
    "NO_API_KEY": _Refusal(
        "The key did not arrive: the web server removes the header Authorization. Configure it to pass the header on; with Apache "
        "and CGI, use `CGIPassAuth On`."
    ),
    "IP_ADDRESS_NOT_ALLOWED": _Refusal(
        "The key may not be used from this machine's address. Allow this address in the settings of the key."
    ),
    "IP_ADDRESS_BANNED": _Refusal(
        "The community has banned this machine's address, as it does after many requests with wrong keys. Remove the ban in its "
        "administration panel."
    ),
    "NO_PERMISSION": _Refusal(
        "The key may not read this. Allow it in the settings of the key, or leave this section out with --section.",
        is_about_path=True,
    ),
    "TOO_MANY_REQUESTS_WITH_BAD_KEY": _Refusal(
        "This machine's address is locked out because of wrong keys. Wait some minutes, then try again."
    ),
}
_MISSING: Final = frozenset(("NO_ENDPOINT", "INVALID_APP", "INVALID_CONTROLLER", "APP_DISABLED"))  # whatever the status
_UNKNOWN: Final = _Refusal("Check the settings of the key in the old community.")
_FOREIGN: Final = _Refusal(
    "This response does not come from the API. Something in front of it, such as a firewall or a password for the whole site, "
    "blocks this machine: allow its requests."
)


class Client:
    """Sends requests to one community. `rate` is in requests per second, `timeout` in seconds without a byte.

    `tell` is called with a sentence before each pause.

    Raises ReadingFailed if the environment names a proxy or certificates that cannot be used.
    """

    def __init__(
        self, url: str, key: str, *, rate: float = 2.0, timeout: float = 30.0, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._url = url
        self._pause = 1 / rate
        self._tell = tell
        self._due = 0.0
        self._form: str | None = None
        self._parser = Parser()
        self._connection = LiveConnection(url, key, timeout)

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def get(self, path: str, *, needed: bool = True, **query: object) -> Any:
        """Return the parsed answer to a request; None if the path does not exist, or if it is not `needed` and not permitted.

        Raises ReadingFailed.
        """
        foreign: list[Answer] = []
        for form in _PATH_FORMS if self._form is None else (self._form,):
            answer = self._ask(self._url + form.format(path) + "&".join(f"{n}={quote_url(str(v))}" for n, v in query.items()))
            read = self._read_json(answer.body)
            if isinstance(read, dict | list):
                self._form = form
                return self._judge(answer, read, path, needed=needed)
            foreign.append(answer)  # a page of the web server, say: the other form of the path may lead to the API
        if self._form is None and all(answer.status == 404 for answer in foreign):
            raise ReadingFailed(
                f"There is no REST API at {self._url}/api: every request returned 404. Give the address of the front page, and "
                "check that the REST API is turned on."
            )
        telling = next((answer for answer in foreign if answer.status != 404), foreign[0])
        return self._judge(telling, None, path, needed=needed)

    def _read_json(self, body: bytes) -> Any:
        try:
            return self._parser.parse(body)
        except orjson.JSONDecodeError:
            return None

    def _judge(self, answer: Answer, read: Any, path: str, *, needed: bool) -> Any:
        content = read if isinstance(read, dict) else {}
        message = content.get("errorMessage")
        if answer.status == 200 and read is not None and message is None:
            return read
        refusal = _REFUSALS.get(str(message), _UNKNOWN) if content else _FOREIGN
        if answer.status == 404 or str(message) in _MISSING or (refusal.is_about_path and not needed):
            return None
        pair = f" ({quote(message)}, {quote(content.get('errorCode'))})" if message else ""
        says = "" if content else _quote_page(answer.body)
        if answer.status in {401, 403} or (answer.status == 200 and message):  # some web servers replace the status
            raise ReadingFailed(
                f"{path} was refused with {answer.status}{pair}.{says} {refusal.advice} No further requests were sent."
            )
        if answer.status == 200:
            kind = quote(answer.headers.get("content-type", "nothing"))
            raise ReadingFailed(
                f"{path} was answered with {kind} that is not JSON.{says} Check that {self._url} is the community itself, and not "
                "a maintenance page or a browser check in front of it. If it is a message of PHP, turn off display_errors there."
            )
        raise ReadingFailed(f"{path} was answered with the status {answer.status}{pair}.{says} See the community's error log.")

    # --- retries -------------------------------------------------------------------------------------------------

    def _ask(self, url: str) -> Answer:
        """Send a request, again after pauses if the community limits requests or fails. Raises ReadingFailed."""
        pauses, retries, patience = iter(_PAUSES), iter(_RETRIES), iter(range(_MOST_PAUSES))
        while True:
            says = ""
            try:
                answer = self._follow(url)
            except Unreachable as error:
                sentence = f"{_shorten(self._url)} could not be reached: {error}."
                wait = next(retries, None)
            else:
                if answer.status == 429:
                    wait = parse_retry_after(answer.headers.get("retry-after")) or next(pauses, None)
                    sentence = (
                        "The community limits requests (429). It may have locked out this machine's address because of wrong keys."
                    )
                elif answer.status >= 500:
                    wait = next(retries, None)
                    wait = wait and max(wait, parse_retry_after(answer.headers.get("retry-after")))
                    sentence, says = f"The community has failed (status {answer.status}).", _quote_page(answer.body)
                else:
                    return answer
            if wait is None or wait > _LONGEST_PAUSE or next(patience, None) is None:
                asked = f" It asks to wait for {wait / 60:,.0f} minutes." if wait and wait > _LONGEST_PAUSE else ""
                raise ReadingFailed(f"{sentence}{says}{asked} Nothing was written; begin again later.")
            self._tell(f"{sentence} Trying again in {tell_seconds(round(wait))}.")
            _sleep(wait)

    def _follow(self, url: str) -> Answer:
        """Send a request, and follow redirects within the community."""
        for _ in range(_MOST_REDIRECTS):
            answer = self._send(url)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            try:
                target = urljoin(url, location)
                origin = find_origin(target)
            except ValueError:
                raise ReadingFailed("The community redirects to an invalid address. Check its settings.") from None
            if origin != find_origin(self._url):
                raise ReadingFailed(
                    f"The community redirects to {quote(origin)}, and the key is not sent there. If that is the "
                    "community, give its address."
                )
            url = target
        raise ReadingFailed(f"{_shorten(self._url)} redirects too many times. Give the address that a browser ends up at.")

    def _send(self, url: str) -> Answer:
        now = _clock()
        if self._due > now:
            _sleep(self._due - now)
        self._due = max(now, self._due) + self._pause
        return self._connection.ask(url)


def _quote_page(body: bytes) -> str:
    """Return a sentence with the first words of a page, which show what sent it; "" if it has none."""
    words = _TAG.sub(" ", body[:_READ].decode("utf-8", "replace")).split()
    return f" It says {quote(unescape(' '.join(words)))}." if words else ""


def _shorten(url: str) -> str:
    return url if len(url) <= 100 else url[:99] + "…"
