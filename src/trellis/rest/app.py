"""The REST application: plain ASGI over the catalogue, one route per operation."""

import asyncio
import logging
import re
import time
from typing import Final

from trellis.core.fields import MAX_ID, invalid_id, quote
from trellis.core.gate import Gate
from trellis.core.keys import Bearer, Keyring, authenticate, redact_keys
from trellis.core.operation import Access, Call, Operation
from trellis.core.version import compute_version, encode_json
from trellis.errors import Refused
from trellis.http.routes import Route, build_routes
from trellis.rest.cache import Answers, Kept
from trellis.rest.calls import call_of, query_of
from trellis.rest.docs import Reference
from trellis.rest.event_loop import CompletionQueue, OncePerTick
from trellis.rest.headers import request_id, request_ids
from trellis.rest.identify import presented_key
from trellis.rest.limits import Throttle
from trellis.rest.links import links_of
from trellis.rest.log import RequestLog
from trellis.rest.request import Exchange, Receive, Reply, Scope, Send, headers_of
from trellis.rest.responses import bad_method, conditional, options, refusal, written
from trellis.rest.routing import Methods, Table
from trellis.settings import Settings
from trellis.store.requests import Request

log = logging.getLogger(__name__)

PREFIX: Final = "/api"
_READ: Final = frozenset(
    b"accept authorization content-length content-type host idempotency-key if-match if-none-match origin transfer-encoding "
    b"x-api-key x-audit-log-reason x-request-id".split()
)
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")


class Rest:
    """The API. Order of judgement: address throttle → key → rate limit → endpoint → grant → body."""

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings
        self.keyring = Keyring()
        self.throttle = Throttle(settings.rate_limit_storage, settings.bad_key_limit)
        self.log = RequestLog(gate, self.keyring)
        self.reference = Reference(gate.catalogue, settings)
        self.answers = Answers(settings.answer_cache)
        self.table = Table(build_routes(gate.catalogue))
        # The data version, None where it is unknown. Asking once per tick is exact: the bytes of a request whose task runs in
        # this tick arrived before the tick began, and so before it was asked.
        self._version = OncePerTick(gate.store.data_version)
        self._completions = CompletionQueue()
        self._ids = request_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter_ns()
        exchange = self._exchange(scope, receive)
        error: str | None = None
        try:
            reply = await self._answer(exchange)
        except Exception as raised:  # noqa: BLE001  # whatever it was, the caller gets an answer
            reply, error = self._failed(exchange, raised)
        headers = headers_of(exchange, reply, self._origin(exchange))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if exchange.method == "HEAD" else reply.body})
        self._note(exchange, reply.status, error, started)

    # --- the way in -------------------------------------------------------------------------------------------------

    def _exchange(self, scope: Scope, receive: Receive) -> Exchange:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                headers[name] = headers[name] + b", " + value if name in headers else value
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        client = scope.get("client")
        return Exchange(
            scope["method"],
            _trimmed(raw_path.partition(b"?")[0].decode("latin-1").removeprefix(PREFIX)),
            scope["query_string"],
            headers,
            self._base(scope, headers),
            client[0] if client else "-",
            request_id(headers.get(b"x-request-id")) or next(self._ids),
            self.gate.now(),
            receive,
        )

    def _base(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """Give the address under which the caller reaches this service."""
        if self.settings.public_url:
            return self.settings.public_url
        host = headers.get(b"host", b"").decode("latin-1")
        if not _HOST.fullmatch(host):
            server = scope.get("server") or ("localhost", 80)
            host = f"{server[0]}:{server[1]}"
        return f"{scope.get('scheme', 'http')}://{host}"

    async def _answer(self, exchange: Exchange) -> Reply:
        methods, text = self.table.find(exchange.path)
        if methods is None and exchange.path in self.reference:
            exchange.logged = False  # reading the reference is no request of the API
            return self._page(exchange)
        if exchange.method == "OPTIONS" and methods is not None:
            return options(methods, cors=bool(self.settings.cors_origins))
        await self.throttle.admit_address(exchange.address)
        bearer = exchange.bearer = await self._identify(exchange)
        if limit := self._limit(bearer):
            exchange.allowance = await self.throttle.admit_key(bearer.public, limit)
        route, target = self._route(exchange, methods, text)
        operation = route.operation
        if not operation.writes:
            return await self._read(exchange, route, target)
        if operation.fork is not None:
            operation = await self._followed(operation, bearer, target)
            exchange.operation = operation.name
        call = await call_of(exchange, operation, bearer.actor, target, self.settings)
        answer = await self._completions.wait_for(self.gate.submit(call))
        return written(route, answer, f"{exchange.base}{PREFIX}{route.operation.path}")

    def _page(self, exchange: Exchange) -> Reply:
        """Answer with a page that needs no key."""
        if exchange.method == "OPTIONS":
            return options(("GET",), cors=bool(self.settings.cors_origins))
        if exchange.method not in {"GET", "HEAD"}:
            raise bad_method(exchange.method, ("GET",))
        return conditional(exchange, self.reference.find(exchange.path, exchange.base))

    async def _identify(self, exchange: Exchange) -> Bearer:
        presented = presented_key(exchange.headers, exchange.query, in_url=self.settings.key_in_url)
        address, now = exchange.address, exchange.at
        version = exchange.version = self._version()
        try:
            if (bearer := self.keyring.recall(presented, address, now, version)) is not None:
                return bearer
            in_place = self.gate.store.reads_inline
            bearer = self._prove(presented, now) if in_place else await asyncio.to_thread(self._prove, presented, now)
            return self.keyring.admit(bearer, presented, address, now, version)
        except Refused as refused:
            if refused.status == 401:
                await self.throttle.count_bad_key(exchange.address)
            raise

    def _prove(self, presented: str, now: str) -> Bearer:
        return self.gate.store.read_single(lambda tx: authenticate(tx, presented, now))

    def _limit(self, bearer: Bearer) -> int:
        """Give how many requests a key may send a minute; 0 is any number."""
        return self.settings.rate_limit if bearer.rate_limit is None else bearer.rate_limit

    def _route(self, exchange: Exchange, methods: Methods | None, text: str | None) -> tuple[Route, int | None]:
        """Judge where a known caller goes: the endpoint, the grant, and the id in the path."""
        if methods is None:
            raise Refused("NO_ENDPOINT", f"There is no {quote(exchange.path)} here. The endpoints are listed in {PREFIX}/docs.")
        if (route := methods.get("GET" if exchange.method == "HEAD" else exchange.method)) is None:
            raise bad_method(exchange.method, methods)
        exchange.operation = route.operation.name
        self.gate.authorise(route.operation.name, _known(exchange).actor)
        return route, None if text is None else _target(route.operation, text)

    async def _followed(self, operation: Operation, bearer: Bearer, target: int | None) -> Operation:
        """Give the operation that one leads to which is only an address."""
        call = Call(operation.name, bearer.actor, target=target)
        led = self.gate.follow(call) if self.gate.store.reads_inline else await asyncio.to_thread(self.gate.follow, call)
        return self.gate.catalogue.find(led.operation)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _read(self, exchange: Exchange, route: Route, target: int | None) -> Reply:
        if (kept := self._kept(exchange, route)) is None:
            if self.gate.store.reads_inline:
                kept = self._look_up(exchange, route, target)
            else:
                kept = await asyncio.to_thread(self._look_up, exchange, route, target)
            self._keep(exchange, route, kept)
        return conditional(exchange, kept)

    def _kept(self, exchange: Exchange, route: Route) -> Kept | None:
        """Give the answer that is kept from before, where the data are still those that it was made from."""
        if exchange.version is None or not self._shared(exchange, route):
            return None
        return self.answers.find(exchange.version, (exchange.path, exchange.query, exchange.base))

    def _keep(self, exchange: Exchange, route: Route, kept: Kept) -> None:
        if exchange.version is not None and self._shared(exchange, route):
            self.answers.keep(exchange.version, (exchange.path, exchange.query, exchange.base), kept)

    def _shared(self, exchange: Exchange, route: Route) -> bool:
        """Say whether every key that may run the operation gets the same answer."""
        return route.operation.access is Access.GRANTED and not (self.settings.key_in_url and b"key=" in exchange.query)

    def _look_up(self, exchange: Exchange, route: Route, target: int | None) -> Kept:
        operation = route.operation
        raw = query_of(exchange, self.settings) if exchange.query else {}
        answer = self.gate.run(Call(operation.name, _known(exchange).actor, raw, target, request_id=exchange.request_id))
        body = encode_json(answer.value)
        links = links_of(route.verb.response, f"{exchange.base}{PREFIX}{route.path}", exchange.query, answer.value)
        return Kept(body, compute_version(body).encode(), ((b"link", links),) if links else ())

    # --- the way out ------------------------------------------------------------------------------------------------

    @staticmethod
    def _failed(exchange: Exchange, raised: Exception) -> tuple[Reply, str]:
        """Answer where something was raised; give the code of the error too."""
        if isinstance(raised, Refused):
            return refusal(exchange, raised), raised.code
        log.error("Request %s failed.", exchange.request_id, exc_info=raised)
        broken = Refused("INTERNAL_ERROR", "The service made a mistake. Nothing of this request was kept as far as we know.")
        return refusal(exchange, broken), broken.code

    def _origin(self, exchange: Exchange) -> bytes | None:
        """Give the origin of a page whose scripts may read the answer."""
        if not self.settings.cors_origins or (origin := exchange.headers.get(b"origin")) is None:
            return None
        allowed = self.settings.cors_origins
        return origin if "*" in allowed or origin.decode("latin-1") in allowed else None

    def _note(self, exchange: Exchange, status: int, error: str | None, started: int) -> None:
        bearer = exchange.bearer
        if not exchange.logged or (bearer is not None and not bearer.log_requests):
            return
        self.log.record(
            Request(
                at=exchange.at,
                method=exchange.method[:16],
                path=_logged(exchange.path),
                operation=exchange.operation,
                key_id=bearer.actor.id if bearer is not None else None,
                address=exchange.address,
                status=status,
                duration=(time.perf_counter_ns() - started) // 1000,
                request_id=exchange.request_id,
                error=error,
            )
        )


def _trimmed(path: str) -> str:
    return path.rstrip("/") if len(path) > 1 else path


def _logged(path: str) -> str:
    return redact_keys(PREFIX + path)[:512]


def _known(exchange: Exchange) -> Bearer:
    if exchange.bearer is None:
        raise RuntimeError("nobody was identified")
    return exchange.bearer


def _target(operation: Operation, text: str) -> int:
    if _ID.fullmatch(text) and int(text) <= MAX_ID:
        return int(text)
    raise invalid_id(operation.singular, text, operation.missing_code)
