"""Send requests that nobody should send, very many of them: `python -m bench.hostile --requests 1000000`.

Each is made at random from the paths and parameters of the service's own OpenAPI document: wrong methods, ids, queries, headers,
keys, bodies, lengths and encodings, among some that are right. None may be answered with 5xx but 503, none may hang, and
afterwards the community must be sound and the service as well as before. A seed makes the same requests again.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx
import uvloop

from bench.process import Server, cores
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store.migrate import migrate

CLIENTS: Final = 16
PATIENCE: Final = 20.0  # seconds until an answer counts as one that never comes
_EXAMPLES: Final = 20  # answers that are kept of those that should not be
_METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "QUERY", "get", "G\x00T", "POST POST", "")
_IDS: Final = (
    *(str(number) for number in (1, 2, 3, 5, 8, 0, -1, 2**31, 2**63 - 1, 2**63, 10**60)),
    *("%00", "%2e%2e%2f1", "1%2f2", "%c3%a9", "%ff", "null", "1;2", "1.0", "+1", "%201", "01", "٣", "NaN", "*", "x" * 2000, ""),
)
_TEXTS: Final = (
    *(
        "",
        "0",
        "1",
        "-1",
        "25",
        "1e9",
        "true",
        "null",
        "[]",
        "{}",
        "name",
        "a,b,c",
        "2020-01-01",
        "9999-12-31T23:59:60Z",
        "%",
        "%zz",
    ),
    *(
        "%00",
        "%ff%fe",
        "%ed%a0%80",
        "' OR 1=1 --",
        "<script>",
        "../../etc/passwd",
        "%F0%9F%98%80",
        "a" * 300,
        "9" * 400,
        "\\",
        "trl_x",
    ),
)
_TYPES: Final = (
    *("application/json", "application/json; charset=utf-8", "application/x-www-form-urlencoded", "text/plain", "application/xml"),
    *("multipart/form-data; boundary=x", "multipart/form-data", "application/json; charset=utf-16", "", "a/b/c", "*/*"),
)
_HEADERS: Final = (
    *(
        "If-Match",
        "If-None-Match",
        "Idempotency-Key",
        "X-Request-Id",
        "traceparent",
        "Range",
        "Accept",
        "Accept-Encoding",
        "Origin",
    ),
    *("X-Forwarded-For", "X-Forwarded-Proto", "X-HTTP-Method-Override", "Cookie", "Prefer", "Upgrade", "Connection", "Via", "X"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """An operation of the document: its method, its path, and the names of what it takes."""

    method: str
    path: str
    query: tuple[str, ...]
    fields: tuple[str, ...]


def read_targets(document: Mapping[str, Any]) -> list[Target]:
    """Return all operations of an OpenAPI document."""
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not isinstance(operation, Mapping) or "responses" not in operation:
                continue
            query = tuple(one["name"] for one in operation.get("parameters", ()) if one.get("in") == "query")
            found.append(Target(method.upper(), path, query, _find_fields(document, operation)))
    return found


def _find_fields(document: Mapping[str, Any], operation: Mapping[str, Any]) -> tuple[str, ...]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in content:
        content = document["components"]["schemas"][content["$ref"].rpartition("/")[2]]
    return tuple(content.get("properties", ()))


class Maker:
    """Makes requests at random, the same ones for the same seed."""

    def __init__(self, seed: int, targets: list[Target], host: str, keys: tuple[str, ...]) -> None:
        self._random = Random(seed)
        self._targets = targets
        self._host = host
        self._keys = keys

    def make(self) -> tuple[bytes, bool]:
        """Return a request, and whether all of it is there: if not, only the end of the connection ends it."""
        chance = self._random
        target = chance.choice(self._targets)
        method = target.method if chance.random() < 0.8 else chance.choice(_METHODS)
        line = f"{method} /api{self._path(target)}{self._query(target)} HTTP/1.1\r\n"
        headers = [("Host", self._host)] if chance.random() < 0.98 else [("Host", chance.choice(_TEXTS))] * chance.randrange(3)
        headers += self._credentials()
        headers += [(chance.choice(_HEADERS), self._text()) for _ in range(chance.choice((0, 0, 0, 1, 2, 5)))]
        body = self._body(target) if method in {"POST", "PUT", "PATCH", "DELETE"} or chance.random() < 0.05 else b""
        whole = True
        if body or method in {"POST", "PUT", "PATCH"}:
            headers.append(("Content-Type", _TYPES[0] if chance.random() < 0.7 else chance.choice(_TYPES)))
            kind = chance.random()
            if kind < 0.05:
                headers.append(("Transfer-Encoding", "chunked"))
                body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
                if chance.random() < 0.3:
                    body, whole = body[: len(body) // 2], False
            elif kind < 0.07:
                headers.append(("Content-Length", chance.choice(("-1", "x", "1, 2", "9" * 30, "0"))))
                whole = False
            else:
                headers.append(("Content-Length", str(len(body))))
        head = line + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        return head.encode("utf-8", "surrogatepass") + body, whole

    def _path(self, target: Target) -> str:
        chance, path = self._random, target.path
        while "{" in path:
            before, _, rest = path.partition("{")
            path = (
                before + (str(chance.randrange(1, 40)) if chance.random() < 0.6 else chance.choice(_IDS)) + rest.partition("}")[2]
            )
        twist = chance.random()
        if twist < 0.02:
            return chance.choice(
                ("/" + path, path + "/", path.upper(), "/.." + path, path + "/x", path.replace("/", "%2f"), path + "?")
            )
        return "/" + quote(self._text())[:2000] if twist < 0.03 else path

    def _query(self, target: Target) -> str:
        chance = self._random
        names = [
            chance.choice(target.query or ("x",)) if chance.random() < 0.8 else chance.choice(_TEXTS)
            for _ in range(chance.choice((0, 0, 1, 2, 4)))
        ]
        if chance.random() < 0.001:
            names *= 2000
        told = [
            f"{name}={quote(self._text(), safe='%')}" for name in names if name != "wait"
        ]  # who waits is answered late, and well
        return "?" + "&".join(told)[:30_000] if told else ""

    def _credentials(self) -> list[tuple[str, str]]:
        chance = self._random
        kind = chance.random()
        key = self._keys[0] if chance.random() < 0.6 else chance.choice(self._keys)
        if kind < 0.75:
            return [("Authorization", f"Bearer {key}")]
        if kind < 0.85:
            return [("X-API-Key", key if kind < 0.82 else self._text())]
        others = (
            "Bearer",
            f"Bearer {key[:-1]}",
            f"Basic {key}",
            f"Bearer  {key}",
            "Bearer trl_" + "A" * 40,
            self._text(),
            f"bearer {key}\t",
        )
        return [("Authorization", chance.choice(others))] * chance.choice((0, 1, 1, 2))

    def _text(self) -> str:
        chance = self._random
        if chance.random() < 0.7:
            return chance.choice(_TEXTS)
        letters = (
            chr(chance.choice((chance.randrange(32, 127), chance.randrange(160, 0x500), 0x202E, 0x1F600)))
            for _ in range(chance.randrange(30))
        )
        return "".join(letters)

    def _body(self, target: Target) -> bytes:
        chance = self._random
        kind = chance.random()
        if kind < 0.25:
            return json.dumps({"name": f"Node {chance.randrange(1000)}"}).encode()
        if kind < 0.7:
            names = [chance.choice(target.fields or ("name",)) for _ in range(chance.randrange(6))]
            value = {name: self._value(3) for name in names} | ({"name": self._text() or "x"} if kind < 0.5 else {})
            return json.dumps(value).encode()
        if kind < 0.8:
            return json.dumps(self._value(5)).encode()
        if kind < 0.9:
            return "&".join(f"{name}={quote(self._text(), safe='%')}" for name in target.fields[: chance.randrange(1, 12)]).encode()
        return chance.choice(_BODIES)(chance)

    def _value(self, depth: int) -> Any:
        chance = self._random
        kind = chance.randrange(9 if depth else 7)
        if kind == 7:
            return [self._value(depth - 1) for _ in range(chance.randrange(5))]
        if kind == 8:
            return {self._text(): self._value(depth - 1) for _ in range(chance.randrange(5))}
        return (None, True, chance.randrange(-5, 50), 2**70, -1.5e300, self._text(), chance.choice(_TEXTS))[kind]


_BODIES: Final[tuple[Callable[[Random], bytes], ...]] = (
    lambda chance: chance.randbytes(chance.randrange(2000)),
    lambda chance: b"[" * chance.choice((10, 1000, 50_000)),
    lambda chance: b'{"name": "x", "name": "y", "a": NaN, "b": 1e999}' if chance.random() < 0.5 else b'{"name": "\\ud800"}',
    lambda chance: b'{"name": "%b"}' % (b"x" * chance.choice((100, 10_000, 300_000))),
    lambda chance: b"{" + b",".join(b'"f%d": 1' % number for number in range(chance.choice((10, 1500)))) + b"}",
    lambda chance: (
        b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\ny\r\n--x--\r\n' if chance.random() < 0.5 else b"--x\r\n--x"
    ),
    lambda _: b"\xff\xfe{\x00}\x00",
    lambda _: b'{"name": "x"',
)


@dataclass
class Found:
    """What came back: status → how often; what should not have come, with the request that brought it."""

    sent: int = 0
    closed: int = 0  # the service ended the connection without an answer, as it may where not all of a request was there
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def note(self, request: bytes, status: int) -> None:
        """Note an answer."""
        self.statuses[status] += 1
        if status >= 500 and status != 503:
            self.blame(f"{status}", request)

    def blame(self, why: str, request: bytes) -> None:
        """Keep a request that was not answered as it should have been."""
        if len(self.wrong) < _EXAMPLES:
            self.wrong.append(f"{why}: {request[:600]!r}")


class Client:
    """Sends one request at a time, on a connection that is opened again when it has ended."""

    def __init__(self, host: str, port: int, found: Found) -> None:
        self._host, self._port, self._found = host, port, found
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: bytes, *, whole: bool) -> None:
        """Send a request, and note what comes."""
        self._found.sent += 1
        try:
            async with asyncio.timeout(PATIENCE):
                keeps = await self._exchange(request, whole=whole)
        except TimeoutError:
            self._found.blame(f"nothing within {PATIENCE:.0f} seconds", request)
            keeps = False
        except (ConnectionError, asyncio.IncompleteReadError):
            self._found.closed += 1
            if whole:
                self._found.blame("closed without an answer", request)
            keeps = False
        if not keeps:
            self.close()

    async def _exchange(self, request: bytes, *, whole: bool) -> bool:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=2**20)
        reader, writer = self._streams
        writer.write(request)
        if not whole:
            writer.write_eof()
        with suppress(ConnectionError):  # it may have been answered before all of it was sent
            await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        self._found.note(request, status)
        if not whole or b"\nconnection: close" in head or request.startswith(b"HEAD") or status in {100, 101}:
            return False
        if status not in {204, 304}:
            await self._read_body(reader, head)
        return True

    @staticmethod
    async def _read_body(reader: asyncio.StreamReader, head: bytes) -> None:
        if b"content-length:" in head:
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]))
            return
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def attack(host: str, port: int, maker: Maker, number: int, tell: Callable[[int], None] = lambda _: None) -> Found:
    """Send so many requests; return what came back. `tell` is called with their number now and then."""
    found = Found()

    async def work() -> None:
        client = Client(host, port, found)
        while found.sent < number:
            request, whole = maker.make()
            await client.send(request, whole=whole)
            if found.sent % 1000 == 0:
                tell(found.sent)
        client.close()

    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return found


def main() -> None:
    """Attack a service of its own, and print what was found; the status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description=__doc__)
    parser.add_argument("--database-url", help="a new PostgreSQL database; SQLite by default")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        settings = Settings.load({"TRELLIS_DATABASE_URL": given.database_url or f"sqlite:///{name}/trellis.db"}, None)
        migrate(settings)
        gate = compose(settings)
        grants = (["*"], ["*.list", "*.get"], ["forums.*"])
        keys = tuple(
            gate.run(Call("keys.create", TERMINAL, {"name": "Load", "grants": one, "rateLimit": 0})).value["key"] for one in grants
        )
        gate.store.close()
        environment = {"TRELLIS_DATABASE_URL": settings.database_url, "TRELLIS_BAD_KEY_LIMIT": "1000000", "TRELLIS_RATE_LIMIT": "0"}
        with Server(["-m", "trellis", "serve", "--port", "0"], Path(name), environment, cores()[0]) as server:
            found, told = _measure(server, keys, given.requests, given.seed)
        problems = compose(settings).run(Call("check.list", TERMINAL, {})).value["problems"]
    sys.stdout.write(json.dumps(told | {"problems": problems, "wrong": found.wrong}, indent=2) + "\n")
    sys.exit(1 if found.wrong or problems or told["health"] != 200 else 0)


def _measure(server: Server, keys: tuple[str, ...], requests: int, seed: int) -> tuple[Found, dict[str, Any]]:
    address = urlsplit(server.address)
    host, port = str(address.hostname), int(address.port or 0)
    with httpx.Client(base_url=f"http://{host}:{port}", trust_env=False) as client:
        maker = Maker(seed, read_targets(client.get("/api/openapi.json").json()), f"{host}:{port}", keys)
        before, began = server.memory(), time.monotonic()
        found = uvloop.run(attack(host, port, maker, requests, lambda sent: _tell(sent, requests)))
        seconds = time.monotonic() - began
        health = client.get("/healthz").status_code
    statuses = dict(sorted(found.statuses.items()))
    mebibytes = [before // 2**20, server.memory() // 2**20]
    return found, {
        "requests": found.sent,
        "seconds": round(seconds),
        "statuses": statuses,
        "closed without an answer": found.closed,
        "MiB before and after": mebibytes,
        "health": health,
    }


def _tell(sent: int, requests: int) -> None:
    sys.stderr.write(f"\r{sent:,} of {requests:,}")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
