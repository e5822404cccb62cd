"""Measures operations beside what they stand for, one after the other and again: reads in process, writes over REST."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from email.message import Message
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson
import sqlalchemy as sa

from bench.cases import AT_ONCE, LARGE_TREE, PAIRS, TREE, Engine
from bench.databases import new_database, postgresql
from bench.growth import Site, Work, seeded
from bench.hot import HOT, make_key, read_with_keys, read_with_settings
from bench.process import Server, cores
from bench.tail import Reader, measure_quiet
from bench.terminal import Steps
from trellis.core.actor import TERMINAL, Actor
from trellis.core.dialect import INVISION, TRELLIS
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call

ENGINES: Final[tuple[Engine, ...]] = ("sqlite", "postgresql")
_READS: Final = 500
_VERSION: Final = "2026-07-28"
_ENVELOPE: Final = {"io.modelcontextprotocol/protocolVersion": _VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
_Way = Callable[[], float]  # does it, and returns the seconds that are compared


def compared(folder: Path, repetitions: int, line: Steps) -> list[dict[str, Any]]:
    """Measure every pair on every engine: a row for each, with the seconds of each repetition of both."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        line.say("starting PostgreSQL")
        server = stack.enter_context(postgresql(folder))
        for engine in ENGINES:
            with new_database(engine, folder, server) as url:
                site = Site(engine, "realistic", TREE, url)
                seeding = seeded(site, lambda done, engine=engine: line.say(f"{engine}: seeded {done:,}"))  # type: ignore[misc]
                with seeding as (gate, _), served(gate, url, folder) as client:
                    rows += _rows(_ways(gate, client), engine, repetitions, line)
            with new_database(engine, folder, server) as url:
                large = Site(engine, "realistic", LARGE_TREE, url)
                with seeded(large, lambda done, engine=engine: line.say(f"{engine}: seeded {done:,}")) as (gate, _):  # type: ignore[misc]
                    rows += _rows({"bound-list": _bounded_lists(gate)}, engine, repetitions, line)
            line.done(f"Compared on {engine}.")
    return rows


class Client:
    """A client of a running service, with one connection that stays open."""

    def __init__(self, address: str, key: str) -> None:
        self.address = address
        self.key = key
        self._connection = HTTPConnection(address.removeprefix("http://"))
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(self, path: str, body: Any) -> str | None:
        """Send a POST and return the id of the change set, if it is one. Raises RuntimeError if it is refused."""
        return self._send("POST", path, orjson.dumps(body), self._headers)[1]["Change-Set-Id"]

    def get(self, path: str) -> None:
        """Send a GET. Raises RuntimeError if it is refused."""
        self._send("GET", path, None, self._headers)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Call a tool over MCP. Raises RuntimeError if it is refused."""
        params = {"name": tool, "arguments": arguments, "_meta": _ENVELOPE}
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        told = {"MCP-Protocol-Version": _VERSION, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        if b'"isError":true' in self._send("POST", "/mcp", body, self._headers | told)[0]:
            raise RuntimeError(f"{tool} was refused")

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[bytes, Message]:
        self._connection.request(method, path, body, headers)
        with self._connection.getresponse() as response:
            answer = response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {answer[:500].decode()}")
            return answer, response.headers


@contextmanager
def served(gate: Gate, url: str, folder: Path) -> Iterator[Client]:
    """Serve a database, and give a client of it."""
    raw = {"name": "Bench", "grants": ["*", "structure.*"], "rateLimit": 10_000_000}
    key = str(gate.run(Call("keys.create", TERMINAL, raw)).value["key"])
    with Server(["-m", "trellis", "serve", "--port", "0"], folder, {"TRELLIS_DATABASE_URL": url}, cores()[0]) as server:
        yield Client(server.address, key)


def _rows(ways: Mapping[str, tuple[_Way, _Way]], engine: Engine, repetitions: int, line: Steps) -> Iterator[dict[str, Any]]:
    for pair in (pair for pair in PAIRS if pair.name in ways):
        reps: list[dict[str, float]] = []
        for number in range(repetitions + 1):
            line.say(f"{engine}: {pair.title}, {number} of {repetitions}")
            reps.append({which: way() for which, way in zip(("one", "other"), ways[pair.name], strict=True)})
        yield {"engine": engine, "pair": pair.name, "reps": reps[1:]}  # the first is for warming up


def _timed(work: Work, clock: Callable[[], float] = time.perf_counter) -> _Way:
    def way() -> float:
        started = clock()
        work()
        return clock() - started

    return way


def _hot_reads(gate: Gate) -> tuple[Work, Work]:
    theirs, ours = read_with_keys(gate, {"dialect": INVISION}, {"dialect": TRELLIS})
    return theirs, ours


def _bounded_reads(gate: Gate) -> tuple[Work, Work]:
    above = gate.run(Call("forums.get", TERMINAL, {}, HOT)).value["parentId"] or HOT
    bounded, plain = read_with_keys(gate, {"bounds": {"forums.*": {"under": [above], "until": "90d"}}}, {})
    return bounded, plain


def _monitored_reads(gate: Gate) -> tuple[_Way, _Way]:
    """Return reads with metrics and without, by the time on the processor: the difference is less than what a machine drifts."""
    watched, plain = read_with_settings(gate, {"TRELLIS_METRICS_TOKEN": "of-no-use-to-anybody"}, {})
    return _timed(watched, time.process_time), _timed(plain, time.process_time)


def _bounded_lists(gate: Gate) -> tuple[_Way, _Way]:
    """Return both ways to read pages of a list, at random: those of a part, and those of all."""
    top = gate.run(Call("forums.list", TERMINAL, {"parentId": "root", "perPage": 1})).value["results"][0]["id"]
    text = make_key(gate, {"bounds": {"forums.*": {"under": [top]}}})
    actor = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    most = gate.run(Call("forums.list", actor)).value["totalPages"]
    dice = random.Random(LARGE_TREE)
    pages = [dice.randint(1, most) for _ in range(_READS)]

    def read(caller: Actor) -> None:
        for page in pages:
            gate.run(Call("forums.list", caller, {"page": page}))

    return _timed(lambda: read(actor)), _timed(lambda: read(TERMINAL))


def _ways(gate: Gate, client: Client) -> Mapping[str, tuple[_Way, _Way]]:
    """Return both ways of each pair."""
    timed = {name: (_timed(one), _timed(other)) for name, (one, other) in _works(gate, client).items()}
    paths = [f"/api/forums/forums/{1 + number * 7919 % TREE}" for number in range(TREE)]

    def read() -> Reader:
        return Reader(client.address, client.key, paths)

    def measure_beside_apply() -> float:
        with read() as beside:
            change_set = _apply(client, "tail", TREE)
        client.post(f"/api/core/changesets/{change_set}/restore", {})
        return beside.p99()

    return timed | {"metrics": _monitored_reads(gate), "tail": (measure_beside_apply, lambda: measure_quiet(read))}


def _apply(client: Client, batch: str, most: int) -> str | None:
    """Apply a document of so many new calendars, and return the id of the change set."""
    entries = [{"externalId": f"{batch}-{number}", "name": "Made by the bench"} for number in range(most)]
    return client.post("/api/core/structure/apply", {"document": {"format": "trellis/1", "name": "bench", "calendars": entries}})


def _reads_of_one(client: Client, forum: int) -> tuple[Work, Work]:
    """Return what reads a forum many times over MCP, and what does so over REST."""

    def call() -> None:
        for _ in range(_READS):
            client.call("forums.get", {"id": forum})

    def read() -> None:
        for _ in range(_READS):
            client.get(f"/api/forums/forums/{forum}")

    return call, read


def _changes(gate: Gate, client: Client) -> tuple[Work, Work]:
    """Return what gives many calendars new names at once and undoes that, and what gives them new names one by one."""
    steps = [{"operation": "calendars.create", "body": {"name": "Made by the bench"}}] * AT_ONCE
    made = gate.run(Call("core.batch", TERMINAL, {"operations": steps})).value["results"]
    calendars, numbers = [one["result"]["id"] for one in made], count()

    def name_anew() -> dict[str, str]:
        return {"name": f"Named {next(numbers)} by the bench"}

    def at_once() -> None:
        changes = [{"operation": "calendars.update", "id": calendar, "body": name_anew()} for calendar in calendars]
        change_set = client.post("/api/core/batch", {"operations": changes})
        client.post(f"/api/core/changesets/{change_set}/restore", {})

    def singly() -> None:
        for calendar in calendars:
            client.post(f"/api/calendar/calendars/{calendar}", name_anew())

    return at_once, singly


def _works(gate: Gate, client: Client) -> Mapping[str, tuple[Work, Work]]:
    """Return both works of each pair whose times are compared."""
    name = sa.text("UPDATE nodes SET external_id = 'bench-' || id")
    gate.store.write(lambda tx: tx.connection.execute(name).rowcount).result()
    dice = random.Random(TREE)
    ids = [dice.randint(1, TREE) for _ in range(_READS)]

    def run(operation: str, target: int | None = None, **raw: Any) -> Any:
        return gate.run(Call(operation, TERMINAL, raw, target)).value

    def read_tree() -> None:
        if (found := run("forums.tree")["total"]) != TREE:
            raise LookupError(f"the tree has {found} forums")

    numbers = count()

    def apply_new() -> None:
        _apply(client, f"new-{next(numbers)}", AT_ONCE)

    def create_singly() -> None:
        for _ in range(AT_ONCE):
            client.post("/api/calendar/calendars", {"name": "Made by the bench"})

    def export() -> Any:
        return run("structure.export", sections="forums")

    exported = export()  # of nodes that no document manages yet: this makes them its own
    run("structure.apply", document=exported, adopt=True)
    steps = [{"operation": "calendars.create", "body": {"name": "Made by the bench"}} for _ in range(AT_ONCE)]
    return {
        "external-id": (
            lambda: [run("forums.get_external", externalId=f"bench-{number}") for number in ids],
            lambda: [run("forums.get", number) for number in ids],
        ),
        "tree": (
            read_tree,
            lambda: [run("forums.list", page=1 + page, perPage=AT_ONCE) for page in range(TREE // AT_ONCE)],
        ),
        "apply": (apply_new, create_singly),
        "plan": (lambda: run("structure.plan", document=exported), export),
        "dialect": _hot_reads(gate),
        "bound-read": _bounded_reads(gate),
        "mcp": _reads_of_one(client, ids[0]),
        "batch": (lambda: client.post("/api/core/batch", {"operations": steps}), create_singly),
        "changes": _changes(gate, client),
    }
