"""Serves callers with a key over any interface: identifies them, limits them, runs operations, and caches and logs the answers."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from trellis.core.actor import Actor
from trellis.core.gate import Gate, Result
from trellis.core.keys import Bearer, KeyNotUsable, Keyring, authenticate, redact_path
from trellis.core.operation import Basis, Call, Operation
from trellis.errors import LongRead, Refused, drop_tracebacks, refuse_out_of_memory
from trellis.http.api.cache import CachedResponse, Name, ResponseCache
from trellis.http.api.counts import RequestCounts
from trellis.http.api.event_loop import CompletionQueue, OncePerTick
from trellis.http.api.headers import accept_request_id, generate_request_ids
from trellis.http.api.identify import extract_key, refuse_key_in_url
from trellis.http.api.rate_limits import Allowance, Throttle
from trellis.http.api.request import REQUEST, ApiRequest, ApiResponse, build_headers
from trellis.http.api.request_log import RequestLog
from trellis.http.api.waiting import WaitingRequests
from trellis.http.asgi import Receive, Scope, Send
from trellis.http.large import LARGE, LargeRequests, run_by_size
from trellis.http.reading import LimitedReads, follow_fork, make_long_reads, read_in_thread, refuse_uncounted
from trellis.http.sending import BytesUnderWay, send_body
from trellis.http.withdrawal import wait_for_write
from trellis.sentences import say
from trellis.settings import Settings
from trellis.store.requests import Request

log = logging.getLogger(__name__)

_READ: Final = frozenset(
    b"accept access-control-request-method authorization change-set content-encoding content-length content-type host "
    b"idempotency-key if-match if-none-match mcp-method mcp-name mcp-protocol-version origin traceparent transfer-encoding "
    b"x-api-key x-audit-log-reason x-request-id".split()
)
_SAME_FOR_ALL: Final = frozenset((Basis.GRANTED, Basis.IMPLIED))  # every key that may run it gets the same response
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")  # only characters of names and addresses, perhaps with a port
_COUNTED_AT_ONCE: Final = 4  # counted reads: each waits for a commit, and may hold a connection meanwhile

Fail = Callable[[ApiRequest, Refused], tuple[ApiResponse, str]]


class Service:
    """The service that the interfaces for keys share. Checks are made in this order: address throttle, key, rate limit.

    It belongs to one event loop. `key_in_url` returns whether a key of a dialect may be sent in the URL.
    """

    def __init__(self, gate: Gate, settings: Settings, key_in_url: Callable[[str], bool] = lambda _: False) -> None:
        self.gate = gate
        self.settings = settings
        self.keyring = Keyring()
        self.throttle = Throttle(settings.rate_limit_storage, settings.bad_key_limit)
        self.log = RequestLog(gate, self.keyring, settings.request_log_size)
        self.responses = ResponseCache(settings.answer_cache, gate.store.has_changed)
        self.counts = RequestCounts() if settings.has_metrics else None
        self.large = LargeRequests(settings.busy_timeout)
        self.under_way = BytesUnderWay(settings.answers_under_way)
        self._key_in_url = key_in_url
        # Counted reads wait for the writer, each with a connection: at most half of those for reads.
        counted = max(1, min(_COUNTED_AT_ONCE, settings.database_pool // 2)), settings.write_queue, settings.busy_timeout
        self._counted = LimitedReads("trellis-counted", *counted, refuse_uncounted)
        self._reading: dict[tuple[int, Name], asyncio.Future[CachedResponse]] = {}  # reads under way in threads
        # The data version; None if it is unknown. Reading it once per tick of the event loop is exact: a request whose task
        # runs in this tick arrived before the tick began, and so before the version was read.
        self.version = OncePerTick(gate.store.data_version)
        self.waiting = WaitingRequests(self.version, settings.waiting_per_key, settings.connections // 4)
        self._completions = CompletionQueue()
        self._read_seconds = settings.database_pool_timeout + settings.database_read_timeout
        self.long_reads = make_long_reads(settings)  # which the panel shares
        self._ids = generate_request_ids()
        self._also = settings.transport_headers

    async def close(self) -> None:
        """Close what is open besides requests: connections to Redis, threads."""
        await self.throttle.close()
        self._counted.close()
        self.long_reads.close()

    # --- receiving ----------------------------------------------------------------------------------------------------

    def read_request(self, scope: Scope, receive: Receive, prefix: str) -> ApiRequest:
        """Read the head of a request for a path below a prefix."""
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                headers[name] = headers[name] + b", " + value if name in headers else value
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        client = scope.get("client")
        request = scope[REQUEST] = ApiRequest(
            scope["method"],
            prefix,
            _trim_slash(raw_path.partition(b"?")[0].decode("latin-1").removeprefix(prefix)),
            scope["query_string"],
            headers,
            self.find_base_url(scope, headers),
            client[0] if client else "-",
            self.choose_request_id(headers),
            self.gate.now(),
            receive,
        )
        return request

    def find_base_url(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """Return the URL under which the caller reaches this service."""
        if self.settings.public_url:
            return self.settings.public_url
        host = headers.get(b"host", b"").decode("latin-1")
        if not _is_host(host):
            server = scope.get("server") or ("localhost", 80)
            host = f"{server[0]}:{server[1]}"
        return f"{scope.get('scheme', 'http')}://{host}"

    def choose_request_id(self, headers: Mapping[bytes, bytes]) -> str:
        """Return the id that the caller has given to a request, or a new one."""
        if sent := headers.get(b"x-request-id"):
            return accept_request_id(sent) or next(self._ids)
        return next(self._ids)

    # --- answering ----------------------------------------------------------------------------------------------------

    async def answer(
        self, request: ApiRequest, send: Send, responding: Awaitable[ApiResponse], fail: Fail, started: int | None = None
    ) -> None:
        """Send the response to a request, or what `fail` makes of a refusal, and log it. `fail` also returns the error's code.

        `started` is when the request was received, in nanoseconds of the performance counter; None means now.
        """
        started = time.perf_counter_ns() if started is None else started
        error: str | None = None
        try:
            response = await responding
        except Exception as raised:  # noqa: BLE001  # whatever it was, the caller gets a response
            await self.take_back(request)
            response, error = fail(request, self.explain(request, raised))
        headers = build_headers(request, response, self.find_allowed_origin(request), self._also)
        body = b"" if request.method == "HEAD" else response.body
        with self.under_way.hold(request.caller, body):  # the head may have to wait, too, until earlier answers are read
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await send_body(send, body)
        status, error = request.outcome or (response.status, error)
        self.log_request(request, status, error, started + request.waited)

    def explain(self, request: ApiRequest, raised: Exception) -> Refused:
        """Return the refusal that reports an exception to the caller of a request."""
        if isinstance(raised, MemoryError):
            log.error("Request %s failed: there was too little memory for it.", request.request_id, extra=request.log_fields)
            raised = refuse_out_of_memory()
        if not isinstance(raised, Refused):
            log.error("Request %s failed.", request.request_id, exc_info=raised, extra=request.log_fields)
            request.refused = "INTERNAL_ERROR"
            told = say("The service failed unexpectedly. As far as we know, nothing from this request was saved.")
            return Refused("INTERNAL_ERROR", told)
        drop_tracebacks(raised)
        request.refused = raised.message
        if "reset" in (facts := raised.facts):
            request.allowance = Allowance(facts["limit"], 0, facts["reset"])
        return raised

    def find_allowed_origin(self, request: ApiRequest) -> bytes | None:
        """Return the origin of the page whose scripts may read the response."""
        if not self.settings.cors_origins or (origin := request.headers.get(b"origin")) is None:
            return None
        allowed = self.settings.cors_origins
        return origin if "*" in allowed or origin.decode("latin-1") in allowed else None

    def log_request(self, request: ApiRequest, status: int, error: str | None, started: int) -> None:
        """Count and log a request that was received at `started`, in nanoseconds of the performance counter."""
        duration = (time.perf_counter_ns() - started) // 1000
        key = None if request.bearer is None else request.bearer.key.id
        if self.counts is not None:
            self.counts.count(request.prefix[1:], request.operation or "", status, duration, request.refused, key)
        if not request.logged or (request.bearer is not None and not request.bearer.log_requests):
            return
        path = redact_path(request.prefix + request.path + request.details)
        of = request.at, request.method[:16], path, request.operation, request.refused_key if key is None else key, request.address
        self.log.record(Request(*of, status, duration, request.request_id, error, is_example=key is None))

    # --- who asks -----------------------------------------------------------------------------------------------------

    async def admit(self, request: ApiRequest) -> Bearer:
        """Identify the caller of a request, and count the request. Raises Refused."""
        await self.throttle.admit_address(request.address)
        bearer = request.bearer = await self._identify(request)
        if limit := self.find_rate_limit(bearer):
            request.allowance = await self.throttle.admit_key(bearer.public, limit)
        return bearer

    async def _identify(self, request: ApiRequest) -> Bearer:
        refused: Refused | None = None
        try:
            presented, request.key_in_url = extract_key(request.headers, request.query)
            bearer = await self._find_bearer(request, presented)
            if not request.key_in_url or self.settings.key_in_url or self._key_in_url(bearer.key.dialect):
                return bearer
        except Refused as raised:
            if isinstance(raised, KeyNotUsable) and raised.key.log_requests:
                request.refused_key = raised.key.id
            if raised.status != 401:
                raise
            refused = None if request.key_in_url and not self.settings.key_in_url else raised
        await self.throttle.count_bad_key(request.address)
        raise refused or refuse_key_in_url()

    async def _find_bearer(self, request: ApiRequest, presented: str) -> Bearer:
        """Return the bearer of a key. Raises Refused: INVALID_API_KEY, IP_ADDRESS_NOT_ALLOWED."""
        address, now = request.address, request.at
        request.version = self.version()
        version = None if request.version is None else self.gate.store.key_version()
        if (bearer := self.keyring.find(presented, address, now, version)) is not None:
            return bearer
        in_place = self.gate.store.reads_inline
        look_up = partial(self._authenticate, presented, now)
        bearer = look_up() if in_place else await read_in_thread(self._read_seconds, look_up)
        return self.keyring.admit(bearer, presented, address, now, version)

    def _authenticate(self, presented: str, now: str) -> Bearer:
        return self.gate.store.read_single(lambda tx: authenticate(tx, presented, now))

    async def wait(self, request: ApiRequest, seconds: float, read: Callable[[], Awaitable[bool]]) -> None:
        """Whenever the data have changed, call `read`, until it returns True or the time is over. See WaitingRequests.wait.

        The key is checked again before each read, so that one that was revoked meanwhile reads nothing.
        """

        async def judge_and_read() -> bool:
            request.at = self.gate.now()
            request.bearer = await self._identify(request)
            return await read()

        received, began = request.at, time.perf_counter_ns()
        try:
            await self.waiting.wait(request.caller, seconds, request.receive, lambda: request.version, judge_and_read)
        finally:
            request.at, request.waited = received, time.perf_counter_ns() - began

    def find_rate_limit(self, bearer: Bearer) -> int:
        """Return how many requests per minute a key may send; 0 means any number."""
        return self.settings.rate_limit if bearer.rate_limit is None else bearer.rate_limit

    # --- running operations -------------------------------------------------------------------------------------------

    async def find_write(self, request: ApiRequest, operation: Operation, actor: Actor, target: int | None) -> Operation:
        """Return the operation that a write runs: a forking one leads to another. Raises Refused, also if too many writes wait."""
        self.gate.store.writer.check_room()  # before anything is read, so that refusing costs little
        if operation.fork is None:
            return operation
        followed = await follow_fork(self.gate, Call(operation.name, actor, target=target), self._read_seconds)
        request.operation = followed.operation
        return self.gate.catalogue.find(followed.operation)

    async def write(self, request: ApiRequest, size: int, submit: Callable[[], Future[Result]]) -> Result:
        """Call `submit`, which reads a request of `size` bytes and hands it to the writer; wait for the result. Raises Refused."""
        future = await run_by_size(size, submit)
        waiting = self._completions.wait_for(future)
        return await wait_for_write(future, waiting, request.receive, self.settings.busy_timeout)

    async def read(
        self, request: ApiRequest, operation: Operation, name: Name, run: Callable[[], CachedResponse], *, slow: bool, size: int
    ) -> CachedResponse:
        """Return the cached answer of this name, or else that of `run`, which reads the request and the data that it asks for.

        `size` is the size of the request in bytes; `slow` means that `run` may take long.
        """
        if self.reads_at_once(request, operation, slow=slow, size=size):
            with suppress(LongRead):
                return self.read_at_once(request, operation, name, run)
        version = _find_version(request, operation)
        if not request.is_long and (cached := self._find(version, name)) is not None:  # one that is long was looked for already
            return cached
        if _is_counted(request, operation) or (slow and require_bearer(request).actor.is_counted):  # it may run counted operations
            cached = await self._counted.run(run)
        else:
            cached = await self._read_in_thread(name, run, version, slow=slow, long=request.is_long)
        return cached if version is None else self.responses.add(version, name, cached)

    async def take_back(self, request: ApiRequest) -> None:
        """Subtract the uses that the reads of a request were counted as, since it is refused after all."""
        uses, request.uses = request.uses, ()
        if uses:
            with suppress(Refused):  # if nothing can be written, the first refusal says what was wrong
                await self._completions.wait_for(self.gate.take_back(require_bearer(request).actor, uses))

    def reads_at_once(self, request: ApiRequest, operation: Operation, *, slow: bool, size: int) -> bool:
        """Return whether a request of so many bytes, and the data that it asks for, are read in the thread of the event loop."""
        quick = self.gate.store.reads_inline and not slow and size <= LARGE and not request.is_long
        return quick and not (_reads_part(request, operation) or _is_counted(request, operation))

    def read_at_once(
        self, request: ApiRequest, operation: Operation, name: Name, run: Callable[[], CachedResponse]
    ) -> CachedResponse:
        """Return the cached answer of this name, or that of `run`, which is called in this thread.

        Raises Refused, and LongRead if it is to be read in another thread.
        """
        version = _find_version(request, operation)
        if (cached := self._find(version, name)) is not None:
            return cached
        try:
            with self.gate.store.reading_briefly():
                cached = run()
        except LongRead:
            request.is_long = True
            raise
        return cached if version is None else self.responses.add(version, name, cached)

    def _find(self, version: int | None, name: Name) -> CachedResponse | None:
        """Return the cached answer of a name, or None, and count the hit or miss. Without a data version there is none."""
        cached = None if version is None else self.responses.find(version, name) or self.renew(name)
        if self.counts is not None:
            if cached is None:
                self.counts.misses += 1
            else:
                self.counts.hits += 1
        return cached

    def renew(self, name: Name) -> CachedResponse | None:
        """Return the response of a name with its current total, if one is in memory in which only the total is out of date."""
        store = self.gate.store
        if not store.reads_inline or name not in self.responses:
            return None
        version = store.data_version()  # not that of the request: much may have been committed since
        if version is None or (old := self.responses.find_renewable(name)) is None or old.renew is None:
            return None
        new = old.renew(old)
        # The total and the rest must be of the same moment: nothing may have been committed since the version was read.
        return self.responses.add(version, name, new) if store.data_version() == version else None

    async def _read_in_thread(
        self, name: Name, run: Callable[[], CachedResponse], version: int | None, *, slow: bool, long: bool
    ) -> CachedResponse:
        """Read in a thread; if another request is already reading the same at the same data version, wait for its result.

        `version` is None if the response is for this caller alone.
        """

        def start() -> Awaitable[CachedResponse]:
            if long or slow:
                return self.long_reads.run(run)
            # On SQLite a read waits for nothing, and has no time limit.
            return asyncio.to_thread(run) if self.gate.store.reads_inline else read_in_thread(self._read_seconds, run)

        if version is None:
            return await start()
        shared = version, name
        if (reading := self._reading.get(shared)) is None:
            reading = self._reading[shared] = asyncio.ensure_future(start())
            reading.add_done_callback(lambda _: self._reading.pop(shared, None))
        return await asyncio.shield(reading)


def _reads_part(request: ApiRequest, operation: Operation) -> bool:
    """Return whether a read searches all nodes or all events for those in the part that the key may see, which may take long."""
    return request.bearer is not None and bool(request.bearer.reach) and not operation.has_target


def require_bearer(request: ApiRequest) -> Bearer:
    """Return the bearer of the key of a request that has been admitted."""
    if request.bearer is None:
        raise RuntimeError("the caller was not identified")
    return request.bearer


def _find_version(request: ApiRequest, operation: Operation) -> int | None:
    """Return the data version of a request, if all keys with the same bounds that may run the operation get the same answer.

    None if the answer is for this caller alone, or if each read is counted and must therefore be made.
    """
    same = operation.access.basis in _SAME_FOR_ALL and not operation.varies and not request.key_in_url
    return request.version if same and not _is_counted(request, operation) else None


def _is_counted(request: ApiRequest, operation: Operation) -> bool:
    """Return whether each use of a grant that the operation needs is counted, which is a write."""
    if request.bearer is None or not (actor := request.bearer.actor).bounds:
        return False
    return any(map(actor.counts, operation.grants))


def _trim_slash(path: str) -> str:
    return path.rstrip("/") if len(path) > 1 else path


def _is_host(host: str) -> bool:
    """Return whether URLs can begin with what a caller has sent as Host. Of the rest, `urlsplit` cannot parse some."""
    try:
        return _HOST.fullmatch(host) is not None and urlsplit(f"//{host}").netloc == host
    except ValueError:  # such as "[", or an IPv6 address that is none
        return False
