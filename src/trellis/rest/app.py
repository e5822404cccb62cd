"""The REST application: plain ASGI over the catalogue, one route per operation."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable
from concurrent.futures import Future
from functools import partial
from typing import Final
from urllib.parse import unquote_to_bytes

from trellis.core.actor import Actor
from trellis.core.fields import MAX_ID, invalid_id, quote
from trellis.core.gate import Gate, Result
from trellis.core.keys import Bearer, Keyring, authenticate, redact_keys
from trellis.core.operation import Access, Call, Operation, RawText
from trellis.core.version import compute_version
from trellis.errors import Refused
from trellis.http.large import LARGE, LargeRequests, run_by_size
from trellis.http.reading import read_in_thread
from trellis.http.routes import Route, build_routes
from trellis.http.sending import BytesUnderWay, send_body
from trellis.http.withdrawal import wait_for_write
from trellis.rest.bodies import refuse_malformed
from trellis.rest.cache import CachedResponse, Name, ResponseCache
from trellis.rest.calls import build_call, is_larger, read_query, receive_body
from trellis.rest.dialect import TRANSLATORS, allows_key_in_url, encode_answer
from trellis.rest.docs import Reference
from trellis.rest.event_loop import CompletionQueue, OncePerTick
from trellis.rest.headers import accept_request_id, generate_request_ids
from trellis.rest.identify import find_key, refuse_key_in_url
from trellis.rest.limits import Throttle
from trellis.rest.links import build_links
from trellis.rest.log import RequestLog
from trellis.rest.request import ApiRequest, ApiResponse, Receive, Scope, Send, build_headers
from trellis.rest.responses import refuse_method, respond_to_options, respond_to_read, respond_to_refusal, respond_to_write
from trellis.rest.routing import Methods, Table
from trellis.settings import Settings
from trellis.store.requests import Request

log = logging.getLogger(__name__)

PREFIX: Final = "/api"
_READ: Final = frozenset(
    b"accept authorization change-set content-length content-type host idempotency-key if-match if-none-match origin "
    b"transfer-encoding x-api-key x-audit-log-reason x-request-id".split()
)
_SAME_FOR_ALL: Final = frozenset((Access.GRANTED, Access.IMPLIED))  # every key that may run it gets the same response
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")


class Rest:
    """The API. Checks are made in this order: address throttle, key, rate limit, endpoint, grant, body."""

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings
        self.keyring = Keyring()
        self.throttle = Throttle(settings.rate_limit_storage, settings.bad_key_limit)
        self.log = RequestLog(gate, self.keyring, settings.request_log_size)
        self.reference = Reference(gate.catalogue, settings)
        self.responses = ResponseCache(settings.answer_cache)
        self.large = LargeRequests()
        self.under_way = BytesUnderWay(settings.answers_under_way)
        self._reading: dict[tuple[int, Name], asyncio.Future[CachedResponse]] = {}  # in threads
        self.table = Table(build_routes(gate.catalogue))
        # The data version; None if it is unknown. Reading it once per tick of the event loop is exact: a request whose task
        # runs in this tick arrived before the tick began, and so before the version was read.
        self._version = OncePerTick(gate.store.data_version)
        self._completions = CompletionQueue()
        self._read_seconds = settings.database_pool_timeout + settings.database_read_timeout
        self._ids = generate_request_ids()
        self._also = settings.transport_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send, malformed: str = "") -> None:
        """Answer a request; with `malformed`, which says what is wrong with it as HTTP, refuse it."""
        started = time.perf_counter_ns()
        request = self._read_request(scope, receive)
        error: str | None = None
        try:
            response = await self._respond(request, malformed)
        except Exception as raised:  # noqa: BLE001  # whatever it was, the caller gets a response
            response, error = self._respond_to_failure(request, raised)
        headers = build_headers(request, response, self._find_allowed_origin(request), self._also)
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        body = b"" if request.method == "HEAD" else response.body
        with self.under_way.hold(request.caller, body):
            await send_body(send, body)
        self._log_request(request, response.status, error, started)

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _read_request(self, scope: Scope, receive: Receive) -> ApiRequest:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                headers[name] = headers[name] + b", " + value if name in headers else value
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        client = scope.get("client")
        return ApiRequest(
            scope["method"],
            _trim_slash(raw_path.partition(b"?")[0].decode("latin-1").removeprefix(PREFIX)),
            scope["query_string"],
            headers,
            self._find_base_url(scope, headers),
            client[0] if client else "-",
            accept_request_id(headers.get(b"x-request-id")) or next(self._ids),
            self.gate.now(),
            receive,
        )

    def _find_base_url(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """Return the URL under which the caller reaches this service."""
        if self.settings.public_url:
            return self.settings.public_url
        host = headers.get(b"host", b"").decode("latin-1")
        if not _HOST.fullmatch(host):
            server = scope.get("server") or ("localhost", 80)
            host = f"{server[0]}:{server[1]}"
        return f"{scope.get('scheme', 'http')}://{host}"

    async def _respond(self, request: ApiRequest, malformed: str) -> ApiResponse:
        if malformed:
            raise refuse_malformed(malformed)
        methods, text = self.table.find(request.path)
        if methods is None and request.path in self.reference:
            request.logged = False  # reading the reference is not a request to the API
            return await self._serve_reference(request)
        if request.method == "OPTIONS" and methods is not None:
            return respond_to_options(methods, cors=bool(self.settings.cors_origins))
        await self.throttle.admit_address(request.address)
        bearer = request.bearer = await self._identify(request)
        if limit := self._find_rate_limit(bearer):
            request.allowance = await self.throttle.admit_key(bearer.public, limit)
        route, target = self._route(request, methods, text)
        operation = route.operation
        if not operation.writes:
            return await self._read(request, route, target)
        self.gate.store.check_room()  # before the body is read, so that refusing costs little
        if operation.fork is not None:
            operation = await self._resolve_fork(operation, bearer, target)
            request.operation = operation.name
        limit = self.settings.body_limit
        large = operation.most_bytes > limit and is_larger(request, limit)
        with self.large.hold(request.caller, large=large):
            return await self._write(request, route, operation, target, operation.most_bytes if large else limit)

    async def _write(self, request: ApiRequest, route: Route, operation: Operation, target: int | None, limit: int) -> ApiResponse:
        body = await receive_body(request, limit)
        size = len(request.query) + len(body)
        future = await run_by_size(size, self._submit, request, operation, _require_bearer(request).actor, target, body)
        waiting = self._completions.wait_for(future)
        result = await wait_for_write(future, waiting, request.receive, self.settings.busy_timeout)
        translator = TRANSLATORS.get(request.dialect)
        # Nothing is read for it: a read that fails would have the client repeat what is done. Keys write no kind that shows groups.
        shown = result.value if translator is None else translator.serialize(operation, result.value, self.gate)
        return respond_to_write(result.verb or route.verb, result, shown, f"{request.base}{PREFIX}{route.operation.path}")

    def _submit(self, request: ApiRequest, operation: Operation, actor: Actor, target: int | None, body: bytes) -> Future[Result]:
        """Read a request whose body has come, and hand it to the writer."""
        return self.gate.submit(build_call(request, operation, actor, target, body, TRANSLATORS.get(request.dialect)))

    async def _serve_reference(self, request: ApiRequest) -> ApiResponse:
        """Return a page of the reference, which needs no key."""
        if request.method == "OPTIONS":
            return respond_to_options(("GET",), cors=bool(self.settings.cors_origins))
        if request.method not in {"GET", "HEAD"}:
            raise refuse_method(request.method, ("GET",))
        return self._respond_to_read(request, await self.reference.find(request.path, request.base))

    async def _identify(self, request: ApiRequest) -> Bearer:
        refused: Refused | None = None
        try:
            presented, request.key_in_url = find_key(request.headers, request.query)
            bearer = await self._find_bearer(request, presented)
            if not request.key_in_url or self.settings.key_in_url or allows_key_in_url(bearer.key.dialect):
                return bearer
        except Refused as raised:
            if raised.status != 401:
                raise
            refused = None if request.key_in_url and not self.settings.key_in_url else raised
        await self.throttle.count_bad_key(request.address)
        raise refused or refuse_key_in_url()

    async def _find_bearer(self, request: ApiRequest, presented: str) -> Bearer:
        """Return the bearer of a key. Raises Refused: INVALID_API_KEY, IP_ADDRESS_NOT_ALLOWED."""
        address, now = request.address, request.at
        version = request.version = self._version()
        if (bearer := self.keyring.find(presented, address, now, version)) is not None:
            return bearer
        in_place = self.gate.store.reads_inline
        look_up = partial(self._authenticate, presented, now)
        bearer = look_up() if in_place else await read_in_thread(self._read_seconds, look_up)
        return self.keyring.admit(bearer, presented, address, now, version)

    def _authenticate(self, presented: str, now: str) -> Bearer:
        return self.gate.store.read_single(lambda tx: authenticate(tx, presented, now))

    def _find_rate_limit(self, bearer: Bearer) -> int:
        """Return how many requests per minute a key may send; 0 means any number."""
        return self.settings.rate_limit if bearer.rate_limit is None else bearer.rate_limit

    def _route(self, request: ApiRequest, methods: Methods | None, text: str | None) -> tuple[Route, int | None]:
        """Find the endpoint that an identified caller requested, check the grant, and read the id in the path."""
        if methods is None:
            raise Refused(
                "NO_ENDPOINT", f"There is no endpoint at {quote(request.path)}. All endpoints are listed at {PREFIX}/docs."
            )
        if (route := methods.get("GET" if request.method == "HEAD" else request.method)) is None:
            raise refuse_method(request.method, methods)
        request.operation = route.operation.name
        self.gate.authorise(route.operation.name, _require_bearer(request).actor)
        if text is None:
            return route, None
        if (named := route.operation.path_field) is not None:
            request.path_values = {named.name: _decode_path(route.operation, text)}
            return route, None
        return route, _parse_id(route.operation, text)

    async def _resolve_fork(self, operation: Operation, bearer: Bearer, target: int | None) -> Operation:
        """Return the operation that a forking operation leads to."""
        call = Call(operation.name, bearer.actor, target=target)
        in_place = self.gate.store.reads_inline
        resolved = self.gate.follow(call) if in_place else await read_in_thread(self._read_seconds, self.gate.follow, call)
        return self.gate.catalogue.find(resolved.operation)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _read(self, request: ApiRequest, route: Route, target: int | None) -> ApiResponse:
        version = request.version if self._is_cacheable(request, route) else None
        cached = None if version is None else self.responses.find(version, request.name)
        if cached is None:
            slow = _may_be_slow(route.operation, request.query)
            if self.gate.store.reads_inline and not slow and len(request.query) <= LARGE:
                cached = self._run_read(request, route, target)
            else:
                cached = await self._read_in_thread(request, route, target, version, slow=slow)
            if version is not None:
                cached = self.responses.add(version, request.name, cached)
        return self._respond_to_read(request, cached)

    def _respond_to_read(self, request: ApiRequest, cached: CachedResponse) -> ApiResponse:
        response = respond_to_read(request, cached)
        if request.method != "HEAD":
            self.under_way.admit(request.caller, response.body)
        return response

    async def _read_in_thread(
        self, request: ApiRequest, route: Route, target: int | None, version: int | None, *, slow: bool
    ) -> CachedResponse:
        """Read in a thread; if others are just reading the same of the same data version, wait for what they read.

        `version` is None if the response is for this caller alone.
        """
        read = partial(self._run_read, request, route, target)
        # On SQLite nothing is waited for, and a slow read takes long on purpose: neither has a time limit.
        unlimited = self.gate.store.reads_inline or slow

        def start() -> Awaitable[CachedResponse]:
            return asyncio.to_thread(read) if unlimited else read_in_thread(self._read_seconds, read)

        if version is None:
            return await start()
        name = version, request.name
        if (reading := self._reading.get(name)) is None:
            reading = self._reading[name] = asyncio.ensure_future(start())
            reading.add_done_callback(lambda _: self._reading.pop(name, None))
        return await asyncio.shield(reading)

    def _is_cacheable(self, request: ApiRequest, route: Route) -> bool:
        """Return whether every key that may run the operation gets the same answer."""
        operation = route.operation
        return operation.access in _SAME_FOR_ALL and not operation.varies and not request.key_in_url

    def _run_read(self, request: ApiRequest, route: Route, target: int | None) -> CachedResponse:
        operation = route.operation
        raw = read_query(request) if request.query or request.path_values else {}
        translator = TRANSLATORS.get(request.dialect)
        if translator is not None and raw:
            raw = translator.read(operation, raw, request.at)
        result = self.gate.run(Call(operation.name, _require_bearer(request).actor, raw, target, request_id=request.request_id))
        if isinstance(result.value, RawText):
            body = result.value.text.encode()
            return CachedResponse(body, compute_version(body).encode(), (), result.value.media_type.encode())
        shown = result.value if translator is None else translator.serialize(operation, result.value, self.gate)
        body, version = encode_answer(result.value, shown, route.verb.response)
        links = build_links(route.verb.response, f"{request.base}{PREFIX}{route.path}", request.query, result.value)
        return CachedResponse(body, version.encode(), ((b"link", links),) if links else ())

    # --- responding ---------------------------------------------------------------------------------------------------

    def _respond_to_failure(self, request: ApiRequest, raised: Exception) -> tuple[ApiResponse, str]:
        """Return the response to an exception, and the code of the error."""
        refused = raised
        if not isinstance(refused, Refused):
            log.error("Request %s failed.", request.request_id, exc_info=raised)
            told = "The service failed unexpectedly. As far as we know, nothing of this request was saved."
            refused = Refused("INTERNAL_ERROR", told)
        translator = TRANSLATORS.get(request.dialect)
        if translator is not None and request.operation is not None:
            operation = self.gate.catalogue.find(request.operation)
            translator = translator if translator.covers(operation) else None  # what the dialect does not have is ours
        code = refused.code if translator is None else translator.find_code(refused.code)
        return respond_to_refusal(request, refused, translator), code

    def _find_allowed_origin(self, request: ApiRequest) -> bytes | None:
        """Return the origin of the page whose scripts may read the response."""
        if not self.settings.cors_origins or (origin := request.headers.get(b"origin")) is None:
            return None
        allowed = self.settings.cors_origins
        return origin if "*" in allowed or origin.decode("latin-1") in allowed else None

    def _log_request(self, request: ApiRequest, status: int, error: str | None, started: int) -> None:
        bearer = request.bearer
        if not request.logged or (bearer is not None and not bearer.log_requests):
            return
        self.log.record(
            Request(
                at=request.at,
                method=request.method[:16],
                path=_redact_path(request.path),
                operation=request.operation,
                key_id=bearer.actor.id if bearer is not None else None,
                address=request.address,
                status=status,
                duration=(time.perf_counter_ns() - started) // 1000,
                request_id=request.request_id,
                error=error,
            )
        )


def _may_be_slow(operation: Operation, query: bytes) -> bool:
    """Return whether a read may take long: by itself, or with a parameter that the query may hold, percent-encoded perhaps."""
    return operation.slow or (operation.slow_with != "" and (operation.slow_with.encode() in query or b"%" in query))


def _trim_slash(path: str) -> str:
    return path.rstrip("/") if len(path) > 1 else path


def _redact_path(path: str) -> str:
    return redact_keys(PREFIX + path)[:512]


def _require_bearer(request: ApiRequest) -> Bearer:
    if request.bearer is None:
        raise RuntimeError("the caller was not identified")
    return request.bearer


def _decode_path(operation: Operation, text: str) -> str:
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise invalid_id(operation.singular, text, operation.missing_code) from None


def _parse_id(operation: Operation, text: str) -> int:
    if _ID.fullmatch(text) and int(text) <= MAX_ID:
        return int(text)
    raise invalid_id(operation.singular, text, operation.missing_code)
