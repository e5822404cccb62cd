"""A request with a key, and its response, in the form that REST and MCP share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trellis.core.bounds import Use
from trellis.core.dialect import TRELLIS
from trellis.core.keys import Bearer
from trellis.core.networks import find_network
from trellis.http.api.rate_limits import Allowance
from trellis.http.asgi import Receive
from trellis.http.json_body import find_pretty
from trellis.http.policy import NO_SNIFFING, POLICY
from trellis.traces import find_traceparent, log_fields

Headers = tuple[tuple[bytes, bytes], ...]

# Names in the scope of a request: of its ApiRequest; of the route of the panel page that it is for; of the reason for its refusal.
REQUEST: Final = "trellis.request"
PAGE: Final = "trellis.page"
PAGE_REFUSAL: Final = "trellis.page.refusal"
JSON: Final = b"application/json"
_BODILESS: Final = frozenset((204, 304))
_ALWAYS: Final[Headers] = (
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Authorization, X-API-Key, Origin, Accept"),
    NO_SNIFFING,
)
_EXPOSED: Final = (
    b"access-control-expose-headers",
    (
        b"Change-Set-Id, Dry-Run, ETag, Event, Idempotent-Replayed, Link, Location, Next, Retry-After, "
        b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
    ),
)


@dataclass(slots=True)
class ApiResponse:
    """A response: status, body, and the headers besides those that every response has."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    type: bytes = JSON
    source: object = None  # kept while the response is sent, so that others who ask for the same get the same bytes


@dataclass(slots=True)
class ApiRequest:
    """A request, and what is known about it so far."""

    method: str
    prefix: str  # of the interface, such as /api
    path: str  # relative to the prefix
    query: bytes
    headers: Mapping[bytes, bytes]
    base: str  # the URL under which the caller reaches this service
    address: str
    request_id: str
    at: str  # when it was received
    receive: Receive
    key_in_url: bool = False  # whether there is a key in the query
    path_values: Mapping[str, str] = field(default_factory=dict)  # values in the path in place of an id, by field
    version: int | None = None  # the data version when its key was checked
    operation: str | None = None
    bearer: Bearer | None = None
    refused_key: int | None = None  # the id of a key that was sent completely, but may not be used
    allowance: Allowance | None = None
    logged: bool = True
    details: str = ""  # what the log appends to the path
    refused: str | None = None  # the message of its refusal
    uses: tuple[Use, ...] = ()  # what its reads were counted as
    waited: int = 0  # nanoseconds for which it has waited for something to happen
    is_long: bool = False  # whether it has turned out that it reads too much for the thread of the event loop
    outcome: tuple[int, str | None] | None = None  # status and error for the log, if they differ from those of the response

    @property
    def name(self) -> tuple[str, bytes, str, str]:
        """The name of its answer in the cache: everything that the answer depends on besides the data."""
        return self.path, self.query, self.base, TRELLIS if self.bearer is None else self.bearer.view

    @property
    def traceparent(self) -> str | None:
        """The trace that it belongs to and the span in it, as a `traceparent`; None if it names none."""
        return find_traceparent(self.headers.items())

    @property
    def log_fields(self) -> dict[str, str | None]:
        """The fields that identify it in a line of the log."""
        return log_fields(self.request_id, self.traceparent)

    @property
    def pretty(self) -> bool:
        """Whether its answer is to be indented."""
        return bool(self.query and find_pretty(self.query))

    @property
    def dialect(self) -> str:
        """The dialect of its key; our own until the key is known."""
        return TRELLIS if self.bearer is None else self.bearer.key.dialect

    @property
    def caller(self) -> str:
        """The public part of its key, or its network if it has no valid key."""
        return find_network(self.address) if self.bearer is None else self.bearer.public


def build_headers(request: ApiRequest, response: ApiResponse, origin: bytes | None, also: Headers) -> list[tuple[bytes, bytes]]:
    """Return all headers of a response, including `also`; `origin` is the origin whose scripts may read it in a browser."""
    headers = [*response.headers, *_ALWAYS, *also, (b"x-request-id", request.request_id.encode("latin-1"))]
    if not any(name == POLICY[0] for name, _ in response.headers):  # the pages of the reference have one of their own
        headers.append(POLICY)
    if response.status not in _BODILESS:
        headers += ((b"content-type", response.type), (b"content-length", b"%d" % len(response.body)))
    if origin is not None:
        headers += ((b"access-control-allow-origin", origin), _EXPOSED)
    if request.allowance is not None:
        limit, remaining, reset = request.allowance
        headers += (
            (b"x-ratelimit-limit", b"%d" % limit),
            (b"x-ratelimit-remaining", b"%d" % remaining),
            (b"x-ratelimit-reset", b"%d" % reset),
        )
    return headers
