"""Responses to reads, from memory or quickly read, that the server sends at once: without a task, in one piece.

Everything is checked as for any other request, by the same functions: address, key, rate limit, grant, changes of the data. If one
of them cannot decide at once, or would refuse, the result is None: then the application answers, and checks everything again.
"""

import os
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from time import perf_counter_ns
from typing import Final, NamedTuple

from trellis.core.keys import Bearer, redact_path
from trellis.core.networks import write_plain
from trellis.core.operation import Operation
from trellis.errors import LongRead, Refused
from trellis.http.addresses import LONGEST_ADDRESS, rewrite_address
from trellis.http.api import (
    Allowance,
    ApiRequest,
    CachedResponse,
    Service,
    build_headers,
    extract_key,
    is_not_modified,
)
from trellis.http.asgi import App, Scope, receive_nothing
from trellis.http.sending import PART
from trellis.http.server import Reads, Whole, write_headers, write_status
from trellis.rest.app import Rest
from trellis.rest.responses import respond_to_read
from trellis.store.requests import Request

_CREDENTIALS: Final = 10_000  # that are remembered
_BASES: Final = 100  # addresses of the service that are remembered
_LONGEST_HOST: Final = 255  # characters of the host in such an address
_METHOD: Final = "GET"
_BODY: Final = frozenset((b"content-length", b"transfer-encoding", b"expect"))

# The headers whose values differ between responses, in the order in which responses have them.
_MARKS: Final = {
    b"etag": b'"%b"',
    b"x-request-id": b"%b",
    b"content-type": b"%b",
    b"content-length": b"%d",
    b"x-ratelimit-limit": b"%d",
    b"x-ratelimit-remaining": b"%d",
    b"x-ratelimit-reset": b"%d",
}


class _ForApplication(Exception):
    """Raised if the application has to answer."""


class Immediate(Reads):
    """Responses to reads below a prefix that can be sent at once. It belongs to the thread of the event loop."""

    is_empty = False

    def __init__(self, rest: Rest, prefix: str) -> None:
        self._rest = rest
        self._service = service = rest.service
        self._gate = service.gate
        self._prefix = prefix
        self._start = prefix.encode() + b"/"
        self._other = _BODY | {b"origin"} if service.settings.cors_origins else _BODY  # requests with these are for the application
        self._whole = _prepare(service, prefix, HTTPStatus.OK)
        self._not_modified = _prepare(service, prefix, HTTPStatus.NOT_MODIFIED)
        self._version: int | None = None  # of the data
        self._key_version: int | None = None
        self._now = ""  # when the requests of this turn of the event loop are answered
        self._is_quiet = False  # whether no address has to wait
        self._digest = blake2b(key=os.urandom(16), digest_size=16)
        self._bearers: dict[bytes, Bearer] = {}  # by a digest of the headers that may contain the key
        self._bases: dict[tuple[str, bytes, tuple[str, int | None] | None], str] = {}
        self._also = service.settings.transport_headers

    def begin(self) -> None:
        self._version = self._service.version.renew()
        key_version = None if self._version is None else self._gate.store.key_version()
        if key_version != self._key_version:
            self._key_version = key_version
            self._bearers.clear()
        self._now = self._gate.now()
        self._is_quiet = self._service.throttle.is_quiet()

    def find(self, scope: Scope) -> Whole | App | None:
        started = perf_counter_ns()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._key_version is None or not self._is_plain(scope, headers):
            return None
        address = write_plain(scope["client"][0])
        try:
            if (bearer := self._find_bearer(headers, address)) is None:
                return None
            if (cached := self._find_cached(scope, headers, bearer)) is None:
                return self._read(scope, bearer, started)
            operation = cached.operation
            if operation is None or cached.is_empty or len(cached.body) > PART or not self._authorise(operation, bearer):
                return None
            allowance = self._admit(bearer)
        except (Refused, _ForApplication):
            return None
        request_id = self._service.choose_request_id(headers)
        status, response = self._respond(cached, headers.get(b"if-none-match"), request_id, allowance)
        path, duration = redact_path(scope["raw_path"].decode("latin-1")), (perf_counter_ns() - started) // 1000
        done = Request(self._now, _METHOD, path, operation.name, bearer.key.id, address, status, duration, request_id, None)
        self._record(done, is_logged=bearer.log_requests)
        return response

    def _is_plain(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Return whether a request comes from an address that may pass, and has nothing that only the application can handle."""
        client = scope["client"]
        return (
            scope["method"] == _METHOD
            and scope["http_version"] == "1.1"
            and scope["raw_path"].startswith(self._start)
            and len(headers) == len(scope["headers"])  # no header comes twice
            and b"host" in headers
            and self._other.isdisjoint(headers)
            and client is not None
            and len(client[0]) <= LONGEST_ADDRESS
            and (self._is_quiet or self._service.throttle.may_pass(client[0]))
        )

    def _find_bearer(self, headers: dict[bytes, bytes], address: str) -> Bearer | None:
        """Return the bearer of a request's key, if it has been authenticated before. Raises Refused if it may not be used."""
        one, other = headers.get(b"authorization", b""), headers.get(b"x-api-key", b"")
        digest = self._digest.copy()
        digest.update(b"%d %b%b" % (len(one), one, other))  # different headers give different bytes
        name = digest.digest()
        if (bearer := self._bearers.get(name)) is not None:
            return self._service.keyring.judge(bearer, address, self._now)
        bearer = self._service.keyring.find(extract_key(headers, b"")[0], address, self._now, self._key_version)
        if bearer is not None:
            if len(self._bearers) >= _CREDENTIALS:  # a key can be sent in very many spellings
                self._bearers.clear()
            self._bearers[name] = bearer
        return bearer

    def _find_cached(self, scope: Scope, headers: dict[bytes, bytes], bearer: Bearer) -> CachedResponse | None:
        """Return the response to a request from memory, if it is still valid, or only its total is out of date."""
        place = scope["scheme"], headers[b"host"], scope["server"]
        if (base := self._bases.get(place)) is None:
            base = self._service.find_base_url(scope, headers)
            if len(self._bases) < _BASES and len(place[1]) <= _LONGEST_HOST:
                self._bases[place] = base
        path = scope["raw_path"].decode("latin-1")[len(self._prefix) :]
        name = path, scope["query_string"], base, bearer.view
        return self._service.responses.find(self._version or 0, name) or self._service.renew(name)

    def _authorise(self, operation: Operation, bearer: Bearer) -> bool:
        """Check the grant, and remember it until the key changes. Return False if its uses are counted. Raises Refused."""
        if operation.name in bearer.authorised:
            return True
        actor = bearer.actor
        if actor.bounds and any(map(actor.counts, operation.grants)):
            return False  # each use is counted, which is a write
        self._gate.authorise(operation.name, actor)
        if not actor.bounds:  # bounds may expire
            bearer.authorised.add(operation.name)
        return True

    def _admit(self, bearer: Bearer) -> Allowance | None:
        """Count a request, and return the allowance of its key; None if the key has no limit. Raises _ForApplication."""
        if not (limit := self._service.find_rate_limit(bearer)):
            return None
        if (allowance := self._service.throttle.admit_key_at_once(bearer.public, limit)) is None:
            raise _ForApplication
        return allowance

    def _read(self, scope: Scope, bearer: Bearer, started: int) -> Whole | App | None:
        """Read what a request asks for, if that may be done in this thread; else return None. Raises Refused, _ForApplication."""
        scope = dict(scope)  # for the application, the address must be as it was sent
        rewrite_address(scope, self._prefix)
        request = self._service.read_request(scope, receive_nothing, self._prefix)
        request.bearer, request.version = bearer, self._version
        if request.query and extract_key(request.headers, request.query)[1]:
            return None
        if (found := self._rest.find_read(request)) is None:
            return None
        request.allowance = self._admit(bearer)
        try:
            response, error = self._rest.read_at_once(request, *found)
        except LongRead:
            return partial(self._rest.send_long, request, *found, started)
        if len(response.body) > PART:
            return partial(self._rest.send_in_parts, request, response, started)
        headers = build_headers(request, response, None, self._also)
        self._service.log_request(request, response.status, error, started)
        return Whole(write_status(response.status), write_headers(headers), response.body)

    def _respond(
        self, cached: CachedResponse, wanted: bytes | None, request_id: str, allowance: Allowance | None
    ) -> tuple[int, Whole]:
        """Return the status and the response; `wanted` is If-None-Match."""
        values: tuple[bytes | int, ...]
        if wanted is not None and is_not_modified(wanted, cached.tag):
            form, body = self._not_modified, b""
            values = cached.tag, request_id.encode("latin-1")
        else:
            form, body = self._whole, cached.body
            values = cached.tag, request_id.encode("latin-1"), cached.type, len(body)
        head = form.headers % values if allowance is None else form.limited % (values + allowance)
        if cached.headers:
            head = write_headers(cached.headers) + head
        return form.status, Whole(form.line, head, body)

    def _record(self, request: Request, *, is_logged: bool) -> None:
        if (counts := self._service.counts) is not None:
            counts.hits += 1
            counts.count(self._prefix[1:], request.operation or "", request.status, request.duration, None, request.key_id)
        if is_logged:
            self._service.log.record(request)


class _Form(NamedTuple):
    """A response with a `%` placeholder for each header value that differs; `limited` are the headers of one with an allowance."""

    status: int
    line: bytes
    headers: bytes
    limited: bytes


def _prepare(service: Service, prefix: str, status: HTTPStatus) -> _Form:
    return _Form(
        status.value,
        write_status(status.value),
        *(_prepare_headers(service, prefix, status, allowance) for allowance in (None, Allowance(0, 0, 0))),
    )


def _prepare_headers(service: Service, prefix: str, status: HTTPStatus, allowance: Allowance | None) -> bytes:
    """Return the headers that the application would send, with `%` placeholders for the values that differ."""
    tag = b"-"
    asked = {b"if-none-match": b'"%b"' % tag} if status is HTTPStatus.NOT_MODIFIED else {}
    request = ApiRequest(_METHOD, prefix, "", b"", asked, "", "", "-", "", receive_nothing)
    request.allowance = allowance
    headers = build_headers(request, respond_to_read(request, CachedResponse(b"", tag)), None, service.settings.transport_headers)
    if [name for name, _ in headers if name in _MARKS] != [name for name in _MARKS if name in dict(headers)]:
        raise RuntimeError("the headers of a response have another order")
    return write_headers((name, _MARKS.get(name) or value.replace(b"%", b"%%")) for name, value in headers)
