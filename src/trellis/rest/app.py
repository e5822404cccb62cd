"""The REST application: plain ASGI over the catalogue, one route per operation."""

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from trellis.core.gate import Answer, Gate
from trellis.core.keyring import Bearer, Keyring
from trellis.core.operation import Call, Operation
from trellis.core.secret import redacted
from trellis.core.values import MAX_ID, invalid_id, shown
from trellis.core.version import encode, version_of
from trellis.errors import Refused
from trellis.rest.bodies import from_body, from_query
from trellis.rest.http import Route, problem, routes
from trellis.rest.identify import presented_key
from trellis.rest.limits import Allowance, Throttle
from trellis.rest.log import Bookkeeper
from trellis.settings import Settings
from trellis.store.journal import Request
from trellis.store.transaction import Transaction

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
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._~+/=:-]{1,128}")
_TAG: Final = re.compile(rb'(W/)?"([^"]*)"|(\*)')
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


class Rest:
    """The API. Order of judgement: address throttle → key → rate limit → endpoint → grant → body."""

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings
        self.keyring = Keyring()
        self.throttle = Throttle(settings.rate_limit_storage, settings.bad_key_limit)
        self.books = Bookkeeper(gate, self.keyring, settings)
        self._version: int | None = None  # the data version, in this turn of the event loop
        self._ids = _numbered()
        self._plain: dict[str, dict[str, Route]] = {}
        self._with_id: dict[str, dict[str, Route]] = {}
        for route in routes(gate.catalogue):
            for path in (route.path, *route.also):
                table = self._with_id if path.endswith("/{id}") else self._plain
                table.setdefault(path.removesuffix("/{id}"), {})[route.method] = route

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
            _request_id(headers.get(b"x-request-id")) or next(self._ids),
        )

    async def _answer(self, exchange: Exchange) -> Reply:
        table = self._plain.get(exchange.path)
        target: str | None = None
        if table is None:
            head, _, target = exchange.path.rpartition("/")
            table = self._with_id.get(head)
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
            allowed = _allowed(table)
            raise Refused(
                "BAD_METHOD",
                f"This path does not answer {shown(exchange.method)}; it answers {allowed}.",
                facts={"allow": allowed},
            )
        exchange.operation = route.operation.name
        self.gate.authorise(route.operation.name, bearer.actor)
        number = self._target(route.operation, target) if target is not None else None
        call = await self._call(exchange, route, bearer, number)
        return self._reply(exchange, route, call, await self._perform(route.operation, call))

    async def _identify(self, exchange: Exchange) -> Bearer:
        query: bytes = exchange.scope["query_string"]
        presented = presented_key(exchange.headers, query, in_url=self.settings.key_in_url)
        try:
            if self.gate.store.in_place:
                return self._judge(presented, exchange.address)
            return await asyncio.to_thread(self._judge, presented, exchange.address)
        except Refused as refused:
            if refused.message == "INVALID_API_KEY":
                await self.throttle.count_bad_key(exchange.address)
            raise

    def _judge(self, presented: str, address: str) -> Bearer:
        with self.gate.store.reading(snapshot=False) as tx:
            return self.keyring.judge(tx, presented, address, self.gate.now(), self._data_version(tx))

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
        kind = operation.kind
        code = kind.missing_code(operation.verb) if kind and operation.verb and operation.verb != "look" else ""
        raise invalid_id(kind.singular if kind else "record", text, code)

    async def _call(self, exchange: Exchange, route: Route, bearer: Bearer, target: int | None) -> Call:
        raw = from_query(exchange.scope["query_string"])
        if self.settings.key_in_url:
            raw.pop("key", None)
        operation = route.operation
        if not operation.writes:
            return Call(operation.name, bearer.actor, raw, target, request_id=exchange.request_id)
        headers = exchange.headers
        body = await self._body(exchange)
        sent = await from_body(headers.get(b"content-type", b""), body)
        raw |= sent
        sent_token = headers.get(b"idempotency-key") if operation.verb == "create" else None
        token = _token(sent_token)
        return Call(
            operation.name,
            bearer.actor,
            raw,
            target,
            expected=_expected(headers.get(b"if-match")),
            request_id=exchange.request_id,
            reason=_reason(headers.get(b"x-audit-log-reason")),
            token=token,
            fingerprint=_fingerprint(operation.name, raw) if token else "",
            idempotency_key=redacted(sent_token.decode("ascii")) if sent_token else None,
        )

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

    async def _perform(self, operation: Operation, call: Call) -> Answer:
        if operation.writes:
            return await asyncio.wrap_future(self.gate.submit(call))
        if self.gate.store.in_place:
            return self.gate.run(call)
        return await asyncio.to_thread(self.gate.run, call)

    # --- the way out ----------------------------------------------------------------------------------------------

    def _reply(self, exchange: Exchange, route: Route, call: Call, answer: Answer) -> Reply:
        body = encode(answer.value)
        if answer.dry:
            return Reply(200, body, [(b"dry-run", b"true")])
        reply = Reply(route.status, body)
        verb = route.operation.verb
        if verb == "list":
            reply.headers.append((b"link", self._links(exchange, route, answer.value).encode("latin-1")))
        if verb in {"get", "list", "create", "update"}:
            tag = version_of(body).encode()
            reply.headers.append((b"etag", b'"' + tag + b'"'))
            wanted = exchange.headers.get(b"if-none-match")
            if wanted is not None and not route.operation.writes and _none_match(wanted, tag):
                reply.status, reply.body = 304, b""
        if verb == "create":
            reply.headers.append(
                (b"location", f"{self._base(exchange)}{PREFIX}{route.path}/{answer.value['id']}".encode("latin-1"))
            )
        if answer.replayed:
            reply.headers.append((b"idempotent-replayed", b"true"))
        del call
        return reply

    def _links(self, exchange: Exchange, route: Route, page: Mapping[str, Any]) -> str:
        here, last = page["page"], page["totalPages"]
        numbers = {"first": 1, "prev": min(here - 1, last), "next": here + 1 if here < last else 0, "last": last}
        query = exchange.scope["query_string"].decode("latin-1")
        kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in {"page", "key"}]
        base = f"{self._base(exchange)}{PREFIX}{route.path}"
        return ", ".join(
            f'<{base}?{urlencode([*kept, ("page", str(number))])}>; rel="{rel}"' for rel, number in numbers.items() if number >= 1
        )

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

    def _options(self, table: Mapping[str, Route]) -> Reply:
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
        if bearer is not None and not bearer.log_requests:
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


def _request_id(sent: bytes | None) -> str:
    """Take a request's id if it is short, plain and no key; "" otherwise."""
    return text if sent is not None and _REQUEST_ID.fullmatch(sent) and redacted(text := sent.decode()) == text else ""


def _numbered() -> Iterator[str]:
    """Make request ids: 16 random digits for this process, and a number."""
    process = os.urandom(8).hex()
    return (f"{process}{number:08x}" for number in count(1))


def _allowed(table: Iterable[str]) -> str:
    methods = set(table) | {"OPTIONS"}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _none_match(wanted: bytes, tag: bytes) -> bool:
    """Compare weakly, as If-None-Match does (RFC 9110, 13.1.2)."""
    return any(star or value == tag for _, value, star in _TAG.findall(wanted))


def _expected(sent: bytes | None) -> tuple[str, ...]:
    """Read If-Match, which compares strongly (RFC 9110, 13.1.1): weak tags match nothing."""
    if sent is None:
        return ()
    tags = tuple("*" if star else value.decode("latin-1") for weak, value, star in _TAG.findall(sent) if not weak)
    return tags or ("",)


def _token(sent: bytes | None) -> str | None:
    if sent is None:
        return None
    if not 1 <= len(sent) <= 255 or not all(0x20 < byte < 0x7F for byte in sent):
        raise Refused("INVALID_HEADER", "Idempotency-Key must be 1 to 255 visible ASCII characters, such as a UUID.")
    return sent.decode("ascii")


def _reason(sent: bytes | None) -> str | None:
    if not sent:
        return None
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        text = sent.decode("latin-1")
    if len(text) > 500 or not text.isprintable():
        raise Refused("INVALID_HEADER", "X-Audit-Log-Reason must be at most 500 characters without control characters.")
    return redacted(text)


def _fingerprint(operation: str, raw: Mapping[str, Any]) -> str:
    """Give a digest of what a request asks for: the same for the same path and values, in whatever order or encoding."""
    return blake2b(encode([operation, _sorted(raw)]), digest_size=16).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[str(name), _sorted(value[name])] for name in sorted(value, key=str)]
    return [_sorted(one) for one in value] if isinstance(value, list) else repr(value)


def _too_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"The body is larger than {limit:,} bytes, which is the most that is read here.")
