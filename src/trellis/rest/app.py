"""The REST application: plain ASGI over the catalogue, one route per operation."""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from trellis.core.gate import Answer, Gate
from trellis.core.keyring import Bearer, Keyring
from trellis.core.operation import Access, Call, Operation
from trellis.core.route import Route, routes
from trellis.core.secret import redacted
from trellis.core.values import MAX_ID, invalid_id, shown
from trellis.core.version import encode, version_of
from trellis.errors import Refused
from trellis.rest.bodies import from_body, from_query
from trellis.rest.cache import Answers, Kept
from trellis.rest.exchange import Exchange, Headers, Receive, Reply, Scope, Send, head_of, lasting, passing
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
from trellis.rest.recall import Known, Recall
from trellis.rest.reference import Reference
from trellis.settings import Settings
from trellis.store.journal import Request
from trellis.store.transaction import Transaction

log = logging.getLogger(__name__)

PREFIX: Final = "/api"
MARK: Final = "trellis.mark"  # in the scope of a request that can be known again: by what
_READ: Final = frozenset(
    b"accept authorization content-length content-type host idempotency-key if-match if-none-match origin transfer-encoding "
    b"x-api-key x-audit-log-reason x-request-id".split()
)
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")
_PROBLEM: Final = b"application/problem+json"
_CORS_HEADERS: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, X-Audit-Log-Reason, X-Request-Id"
)
_EXPOSED: Final = (
    b"Dry-Run, ETag, Idempotent-Replayed, Link, Location, Retry-After, "
    b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
)


class Rest:
    """The API. Order of judgement: address throttle → key → rate limit → endpoint → grant → body."""

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings
        self.keyring = Keyring()
        self.throttle = Throttle(settings.rate_limit_storage, settings.bad_key_limit)
        self.books = Bookkeeper(gate, self.keyring, settings)
        self.reference = Reference(gate.catalogue, settings)
        self.answers = Answers(settings.answer_cache // 2) if settings.answer_cache else None
        self.recall = Recall(settings.answer_cache // 2)
        self._version: int | None = None  # the data version, in this turn of the event loop
        self.in_place = gate.store.in_place and self.throttle.in_place
        self.mark = self.recall.mark
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
        reply, error = await self._judged(exchange)
        headers = self._headers(exchange, reply)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if exchange.method == "HEAD" else reply.body})
        self._note(exchange, reply.status, error, started)

    def at_once(self, scope: Scope) -> tuple[bytes, bytes]:
        """Answer a GET without a task of its own, where `in_place` says that nothing has to be waited for.

        Gives the head of the answer without the empty line behind it, and the body.
        """
        started = time.perf_counter_ns()
        exchange = self._exchange(scope, _nothing)
        judging = self._judged(exchange)
        try:
            judging.send(None)
        except StopIteration as done:
            reply, error = done.value
        else:
            judging.close()
            raise RuntimeError(f"GET {exchange.path} had to wait for something.")
        head = head_of(reply.status, self._headers(exchange, reply))
        self._note(exchange, reply.status, error, started)
        return head, reply.body

    def again(self, mark: bytes) -> tuple[bytes, bytes] | None:
        """Answer a request that is known; None if it is not, or has to be judged anew. Gives what `at_once` gives.

        What can have changed under one data version is judged here: the end of the key, and how often it is used.
        """
        started = time.perf_counter_ns()
        try:
            known = self.recall.find(self._version or self.gate.store.look(self._data_version), mark)
            if known is None or not self.throttle.quiet:
                return None
            bearer, now = known.bearer, self.gate.now()
            if not bearer.good(now):
                return None
            allowance = self.throttle.admit_key_here(bearer.public, known.limit) if known.limit else None
        except Refused:
            return None
        self.keyring.use(bearer.key.id, now)
        request_id = next(self._ids)
        head = known.head + b"".join([b"%b: %b\r\n" % header for header in passing(request_id, allowance)])
        if bearer.log_requests:
            duration = (time.perf_counter_ns() - started) // 1000
            self.books.note(
                Request(
                    now, "GET", known.path, known.operation, bearer.key.id, known.address, known.status, duration, request_id, None
                )
            )
        return head, known.body

    async def _judged(self, exchange: Exchange) -> tuple[Reply, str | None]:
        """Give the answer, and the code of the error if it is one."""
        try:
            return await self._answer(exchange), None
        except Refused as refused:
            return self._refusal(exchange, refused), refused.reason.code
        except Exception:
            log.exception("Request %s failed.", exchange.request_id)
            broken = Refused("INTERNAL_ERROR", "The service made a mistake. Nothing of this request was kept as far as we know.")
            return self._refusal(exchange, broken), broken.reason.code

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
            self.gate.now(),
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
        if limit := self._limit(bearer):
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
        version = self._version if shared else None
        name = (exchange.path, scope["query_string"], exchange.headers.get(b"host"), scope.get("scheme"))
        kept = self.answers.find(version, name) if self.answers is not None and version is not None else None
        if kept is not None:
            exchange.lasts = version
        else:
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
        try:
            if self.gate.store.in_place:
                return self._judge(presented, exchange.address, exchange.at)
            return await asyncio.to_thread(self._judge, presented, exchange.address, exchange.at)
        except Refused as refused:
            if refused.message == "INVALID_API_KEY":
                await self.throttle.count_bad_key(exchange.address)
            raise

    def _judge(self, presented: str, address: str, now: str) -> Bearer:
        return self.gate.store.look(lambda tx: self.keyring.judge(tx, presented, address, now, self._data_version(tx)))

    def _limit(self, bearer: Bearer) -> int:
        """Give how many requests a key may send a minute; 0 is any number."""
        return self.settings.rate_limit if bearer.rate_limit is None else bearer.rate_limit

    def _data_version(self, tx: Transaction) -> int | None:
        """Give the data version, asked for once per turn of the event loop.

        That is exact: the bytes of a request that is handled in this turn came after every commit that its sender knew of.
        """
        if not tx.sqlite:
            return None
        if self._version is None:
            self._version = tx.version()
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

    def _headers(self, exchange: Exchange, reply: Reply) -> Headers:
        """Give the headers of an answer; remember the request if it will get the same one again."""
        headers = lasting(reply, self._origin(exchange), _EXPOSED)
        mark: bytes | None = exchange.scope.get(MARK)
        if mark is not None and exchange.lasts is not None and exchange.bearer is not None:
            known = Known(
                exchange.bearer,
                self._limit(exchange.bearer),
                redacted(PREFIX + exchange.path)[:512],
                exchange.operation,
                exchange.address,
                head_of(reply.status, headers),
                reply.body,
                reply.status,
            )
            self.recall.keep(exchange.lasts, mark, known)
        return headers + passing(exchange.request_id, exchange.allowance)

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
                at=exchange.at,
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


async def _nothing() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def _allowed(table: Iterable[str]) -> str:
    methods = set(table) | {"OPTIONS"}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _bad_method(method: str, table: Iterable[str]) -> Refused:
    allowed = _allowed(table)
    return Refused("BAD_METHOD", f"This path does not answer {shown(method)}; it answers {allowed}.", facts={"allow": allowed})


def _too_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"The body is larger than {limit:,} bytes, which is the most that is read here.")
