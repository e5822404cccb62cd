"""The REST application: plain ASGI over the catalogue, one route per operation."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.core.gate import Answer, Gate
from trellis.core.keyring import Bearer, Keyring, Proof, prove
from trellis.core.operation import Access, Call, Operation
from trellis.core.route import Route, routes
from trellis.core.secret import redacted
from trellis.core.values import MAX_ID, invalid_id, shown
from trellis.core.version import encode, version_of
from trellis.errors import Refused
from trellis.rest.bodies import from_body, from_query
from trellis.rest.cache import Answers, Kept
from trellis.rest.headers import (
    audit_reason,
    expected_versions,
    fingerprint,
    idempotency_token,
    none_match,
    request_id,
    request_ids,
)
from trellis.rest.http import problem
from trellis.rest.identify import presented_key
from trellis.rest.limits import Allowance, Throttle
from trellis.rest.links import links_of
from trellis.rest.log import Bookkeeper
from trellis.rest.reference import Reference
from trellis.settings import Settings
from trellis.store.journal import Request

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PREFIX: Final = "/api"
_READ: Final = frozenset(
    b"accept authorization content-length content-type host idempotency-key if-match if-none-match origin transfer-encoding "
    b"x-api-key x-audit-log-reason x-request-id".split()
)
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")
_JSON: Final = b"application/json"
_PROBLEM: Final = b"application/problem+json"
_CORS_HEADERS: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, X-Audit-Log-Reason, X-Request-Id"
)
_EXPOSED: Final = (
    b"Dry-Run, ETag, Idempotent-Replayed, Link, Location, Retry-After, "
    b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
)


@dataclass(slots=True)
class Reply:
    """An answer on its way: status, body, and headers beside those that every answer has."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)
    type: bytes = _JSON


@dataclass(slots=True)
class Exchange:
    """One request under way, and what has been found out about it so far."""

    scope: Scope
    receive: Receive
    method: str
    path: str
    headers: dict[bytes, bytes]
    address: str
    request_id: str
    operation: str | None = None
    bearer: Bearer | None = None
    allowance: Allowance | None = None
    logged: bool = True


class Rest:
    """The API. Order of judgement: address throttle → key → rate limit → endpoint → grant → body."""

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings
        self.keyring = Keyring()
        self.throttle = Throttle(settings.rate_limit_storage, settings.bad_key_limit)
        self.books = Bookkeeper(gate, self.keyring, settings)
        self.reference = Reference(gate.catalogue, settings)
        self.answers = Answers(settings.answer_cache) if settings.answer_cache else None
        self._version: int | None = None  # the data version, in this turn of the event loop
        self._ids = request_ids()
        self._plain: dict[str, dict[str, Route]] = {}
        self._with_id: dict[str, dict[str, Route]] = {}
        self._with_tail: dict[tuple[str, str], dict[str, Route]] = {}  # what stands before the id, and what behind it
        for route in routes(gate.catalogue):
            for path in (route.path, *route.also):
                head, mark, tail = path.partition("/{id}")
                if tail:
                    self._with_tail.setdefault((head, tail), {})[route.method] = route
                else:
                    (self._with_id if mark else self._plain).setdefault(head, {})[route.method] = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter_ns()
        exchange = self._exchange(scope, receive)
        error: str | None = None
        try:
            reply = await self._answer(exchange)
        except Refused as refused:
            reply, error = self._refusal(exchange, refused), refused.reason.code
        except Exception:
            log.exception("Request %s failed.", exchange.request_id)
            broken = Refused("INTERNAL_ERROR", "The service made a mistake. Nothing of this request was kept as far as we know.")
            reply, error = self._refusal(exchange, broken), broken.reason.code
        await self._send(exchange, reply, send)
        self._note(exchange, reply.status, error, started)

    # --- the way in -----------------------------------------------------------------------------------------------

    def _exchange(self, scope: Scope, receive: Receive) -> Exchange:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                headers[name] = headers[name] + b", " + value if name in headers else value
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        path = raw_path.partition(b"?")[0].decode("latin-1").removeprefix(PREFIX)
        client = scope.get("client")
        return Exchange(
            scope,
            receive,
            scope["method"],
            path.rstrip("/") if len(path) > 1 else path,
            headers,
            client[0] if client else "-",
            request_id(headers.get(b"x-request-id")) or next(self._ids),
        )

    async def _answer(self, exchange: Exchange) -> Reply:
        table, target = self._found(exchange.path)
        if table is None and exchange.path in self.reference:
            exchange.logged = False  # reading the reference is no request of the API
            return self._page(exchange)
        if exchange.method == "OPTIONS" and table is not None:
            return self._options(table)
        await self.throttle.admit_address(exchange.address)
        bearer = exchange.bearer = await self._identify(exchange)
        limit = self.settings.rate_limit if bearer.rate_limit is None else bearer.rate_limit
        if limit:
            exchange.allowance = await self.throttle.admit_key(bearer.public, limit)
        if table is None:
            raise Refused("NO_ENDPOINT", f"There is no {shown(exchange.path)} here. The endpoints are listed in {PREFIX}/docs.")
        method = "GET" if exchange.method == "HEAD" else exchange.method
        if (route := table.get(method)) is None:
            raise _bad_method(exchange.method, table)
        exchange.operation = route.operation.name
        operation = self.gate.authorise(route.operation.name, bearer.actor)
        number = self._target(operation, target) if target is not None else None
        if not operation.writes:
            return await self._read(exchange, route, bearer, number)
        if operation.fork is not None:
            operation = await self._followed(operation, bearer, number)
            exchange.operation = operation.name
        call = await self._call(exchange, operation, bearer, number)
        return self._reply(exchange, route, await asyncio.wrap_future(self.gate.submit(call)))

    def _found(self, path: str) -> tuple[dict[str, Route] | None, str | None]:
        """Find what is served at a path: the routes by method, and the id in the path."""
        if (table := self._plain.get(path)) is not None:
            return table, None
        head, _, last = path.rpartition("/")
        if (table := self._with_id.get(head)) is not None:
            return table, last
        head, _, target = head.rpartition("/")
        return self._with_tail.get((head, f"/{last}")), target

    async def _followed(self, operation: Operation, bearer: Bearer, target: int | None) -> Operation:
        """Give the operation that one leads to which is only an address."""
        call = Call(operation.name, bearer.actor, target=target)
        led = self.gate.follow(call) if self.gate.store.in_place else await asyncio.to_thread(self.gate.follow, call)
        return self.gate.catalogue.find(led.operation)

    async def _read(self, exchange: Exchange, route: Route, bearer: Bearer, target: int | None) -> Reply:
        """Answer a reading operation, from memory where the data are still those that were answered from."""
        scope = exchange.scope
        shared = route.operation.access is Access.GRANTED and not (self.settings.key_in_url and b"key=" in scope["query_string"])
        version = self._data_version() if shared else None
        name = (exchange.path, scope["query_string"], exchange.headers.get(b"host"), scope.get("scheme"))
        kept = self.answers.find(version, name) if self.answers is not None and version is not None else None
        if kept is None:
            kept = await self._look_up(exchange, route, bearer, target)
            if self.answers is not None and version is not None:
                self.answers.keep(version, name, kept)
        headers = [*kept.headers, (b"etag", b'"' + kept.tag + b'"')]
        wanted = exchange.headers.get(b"if-none-match")
        if wanted is not None and none_match(wanted, kept.tag):
            return Reply(304, b"", headers)
        return Reply(route.status, kept.body, headers)

    async def _look_up(self, exchange: Exchange, route: Route, bearer: Bearer, target: int | None) -> Kept:
        call = Call(route.operation.name, bearer.actor, self._query(exchange), target, request_id=exchange.request_id)
        answer = self.gate.run(call) if self.gate.store.in_place else await asyncio.to_thread(self.gate.run, call)
        body = encode(answer.value)
        here = f"{self._base(exchange)}{PREFIX}{route.path}"
        links = links_of(route.operation.verb, here, exchange.scope["query_string"], answer.value)
        return Kept(body, version_of(body).encode(), ((b"link", links),) if links else ())

    async def _identify(self, exchange: Exchange) -> Bearer:
        query: bytes = exchange.scope["query_string"]
        presented = presented_key(exchange.headers, query, in_url=self.settings.key_in_url)
        address, now, version = exchange.address, self.gate.now(), self._data_version()
        try:
            if (bearer := self.keyring.recall(presented, address, now, version)) is not None:
                return bearer
            in_place = self.gate.store.in_place
            proof = self._prove(presented, now) if in_place else await asyncio.to_thread(self._prove, presented, now)
            return self.keyring.admit(proof, presented, address, now, version)
        except Refused as refused:
            if refused.message == "INVALID_API_KEY":
                await self.throttle.count_bad_key(exchange.address)
            raise

    def _prove(self, presented: str, now: str) -> Proof:
        return self.gate.store.look(lambda tx: prove(tx, presented, now))

    def _data_version(self) -> int | None:
        """Give the data version, asked for once per turn of the event loop.

        That is exact: the bytes of a request that is handled in this turn came after every commit that its sender knew of.
        """
        if self._version is None:
            self._version = self.gate.store.data_version()
            asyncio.get_running_loop().call_soon(self._forget_version)
        return self._version

    def _forget_version(self) -> None:
        self._version = None

    @staticmethod
    def _target(operation: Operation, text: str) -> int:
        if _ID.fullmatch(text) and int(text) <= MAX_ID:
            return int(text)
        raise invalid_id(operation.singular, text, operation.missing_code)

    async def _call(self, exchange: Exchange, operation: Operation, bearer: Bearer, target: int | None) -> Call:
        raw = self._query(exchange)
        headers = exchange.headers
        body = await self._body(exchange)
        sent = await from_body(headers.get(b"content-type", b""), body)
        raw |= sent
        sent_token = headers.get(b"idempotency-key") if operation.verb == "create" else None
        return Call(
            operation.name,
            bearer.actor,
            raw,
            target,
            expected=expected_versions(headers.get(b"if-match")),
            request_id=exchange.request_id,
            reason=audit_reason(headers.get(b"x-audit-log-reason")),
            token=idempotency_token(sent_token),
            fingerprint=fingerprint(operation.name, raw) if sent_token else "",
            idempotency_key=redacted(sent_token.decode("ascii")) if sent_token else None,
        )

    def _query(self, exchange: Exchange) -> dict[str, Any]:
        raw = from_query(exchange.scope["query_string"])
        if self.settings.key_in_url:
            raw.pop("key", None)
        return raw

    async def _body(self, exchange: Exchange) -> bytes:
        limit = self.settings.body_limit
        announced = exchange.headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)
        if announced == b"0" and b"transfer-encoding" not in exchange.headers:
            return b""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await exchange.receive()
            if message["type"] == "http.disconnect":
                raise Refused("MALFORMED_REQUEST", "The connection ended before the whole body had come.")
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts)

    # --- the way out ----------------------------------------------------------------------------------------------

    def _reply(self, exchange: Exchange, route: Route, answer: Answer) -> Reply:
        """Answer a writing operation."""
        body = encode(answer.value)
        if answer.dry:
            return Reply(200, body, [(b"dry-run", b"true")])
        reply = Reply(route.status, body)
        verb = route.operation.verb
        if verb in {"create", "update"}:
            reply.headers.append((b"etag", b'"' + version_of(body).encode() + b'"'))
        if verb == "create":
            reply.headers.append(
                (b"location", f"{self._base(exchange)}{PREFIX}{route.path}/{answer.value['id']}".encode("latin-1"))
            )
        if answer.replayed:
            reply.headers.append((b"idempotent-replayed", b"true"))
        return reply

    def _base(self, exchange: Exchange) -> str:
        """Give the address under which the caller reaches this service."""
        if self.settings.public_url:
            return self.settings.public_url
        host = exchange.headers.get(b"host", b"").decode("latin-1")
        if not _HOST.fullmatch(host):
            server = exchange.scope.get("server") or ("localhost", 80)
            host = f"{server[0]}:{server[1]}"
        return f"{exchange.scope.get('scheme', 'http')}://{host}"

    def _refusal(self, exchange: Exchange, refused: Refused) -> Reply:
        status, body = problem(refused, self._base(exchange), exchange.request_id)
        headers: Headers = []
        facts = refused.facts
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="trellis"'))
        if "retryAfter" in facts or status == 503:
            headers.append((b"retry-after", str(facts.get("retryAfter", 1)).encode()))
        if refused.message == "RATE_LIMITED":
            exchange.allowance = Allowance(facts["limit"], 0, facts["reset"])
        if "allow" in facts:
            headers.append((b"allow", facts["allow"].encode()))
        return Reply(status, body, headers, _PROBLEM)

    def _page(self, exchange: Exchange) -> Reply:
        """Answer with a page that needs no key."""
        if exchange.method == "OPTIONS":
            return self._options(("GET",))
        if exchange.method not in {"GET", "HEAD"}:
            raise _bad_method(exchange.method, ("GET",))
        page = self.reference.find(exchange.path, self._base(exchange))
        headers: Headers = [*page.headers, (b"etag", b'"' + page.tag + b'"')]
        wanted = exchange.headers.get(b"if-none-match")
        if wanted is not None and none_match(wanted, page.tag):
            return Reply(304, b"", headers)
        return Reply(200, page.body, headers, page.type)

    def _options(self, table: Iterable[str]) -> Reply:
        allowed = _allowed(table).encode()
        headers: Headers = [(b"allow", allowed)]
        if self.settings.cors_origins:
            headers.append((b"access-control-allow-methods", allowed))
            headers.append((b"access-control-allow-headers", _CORS_HEADERS.encode()))
            headers.append((b"access-control-max-age", b"600"))
        return Reply(204, b"", headers)

    async def _send(self, exchange: Exchange, reply: Reply, send: Send) -> None:
        headers = reply.headers
        if reply.status not in {204, 304}:
            headers.append((b"content-type", reply.type))
            headers.append((b"content-length", str(len(reply.body)).encode()))
        headers.append((b"x-request-id", exchange.request_id.encode("latin-1")))
        headers.append((b"cache-control", b"private, no-cache"))
        headers.append((b"vary", b"Authorization, X-API-Key, Origin"))
        headers.append((b"x-content-type-options", b"nosniff"))
        if (allowance := exchange.allowance) is not None:
            headers.append((b"x-ratelimit-limit", str(allowance.limit).encode()))
            headers.append((b"x-ratelimit-remaining", str(allowance.remaining).encode()))
            headers.append((b"x-ratelimit-reset", str(allowance.reset).encode()))
        if self.settings.cors_origins and (origin := self._origin(exchange)):
            headers.append((b"access-control-allow-origin", origin))
            headers.append((b"access-control-expose-headers", _EXPOSED))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if exchange.method == "HEAD" else reply.body})

    def _origin(self, exchange: Exchange) -> bytes | None:
        origin = exchange.headers.get(b"origin")
        if origin is None:
            return None
        allowed = self.settings.cors_origins
        return origin if "*" in allowed or origin.decode("latin-1") in allowed else None

    def _note(self, exchange: Exchange, status: int, error: str | None, started: int) -> None:
        bearer = exchange.bearer
        if not exchange.logged or (bearer is not None and not bearer.log_requests):
            return
        self.books.note(
            Request(
                at=self.gate.now(),
                method=exchange.method[:16],
                path=redacted(PREFIX + exchange.path)[:512],
                operation=exchange.operation,
                key_id=bearer.actor.id if bearer is not None else None,
                address=exchange.address,
                status=status,
                duration=(time.perf_counter_ns() - started) // 1000,
                request_id=exchange.request_id,
                error=error,
            )
        )


def _allowed(table: Iterable[str]) -> str:
    methods = set(table) | {"OPTIONS"}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _bad_method(method: str, table: Iterable[str]) -> Refused:
    allowed = _allowed(table)
    return Refused("BAD_METHOD", f"This path does not answer {shown(method)}; it answers {allowed}.", facts={"allow": allowed})


def _too_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"The body is larger than {limit:,} bytes, which is the most that is read here.")
