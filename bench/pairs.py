"""Measures operations beside what they stand for, one after the other and again: reads in process, writes over REST."""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson
import sqlalchemy as sa

from bench.cases import AT_ONCE, PAIRS, TREE
from bench.growth import Engine, Site, Work, on_postgresql, on_sqlite, postgresql, seeded
from bench.hot import read_in_dialects
from bench.process import Server, cores
from bench.terminal import Steps
from trellis.core.actor import TERMINAL
from trellis.core.dialect import INVISION, TRELLIS
from trellis.core.gate import Gate
from trellis.core.operation import Call

ENGINES: Final[tuple[Engine, ...]] = ("sqlite", "postgresql")
_READS: Final = 500


def compared(folder: Path, repetitions: int, line: Steps) -> list[dict[str, Any]]:
    """Measure every pair on every engine: a row for each, with the seconds of each repetition of both."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        line.say("starting PostgreSQL")
        server = stack.enter_context(postgresql(folder))
        for engine in ENGINES:
            with on_sqlite(folder) if engine == "sqlite" else on_postgresql(server) as url:
                site = Site(engine, "realistic", TREE, url)
                seeding = seeded(site, lambda done, engine=engine: line.say(f"{engine}: seeded {done:,}"))  # type: ignore[misc]
                with seeding as (gate, _), served(gate, url, folder) as client:
                    rows += _rows(gate, client, engine, repetitions, line)
            line.done(f"Compared on {engine}.")
    return rows


class Client:
    """A client of a running service, with one connection that stays open."""

    def __init__(self, address: str, key: str) -> None:
        self._connection = HTTPConnection(address.removeprefix("http://"))
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(self, path: str, body: Any) -> None:
        """Send a POST. Raises RuntimeError if it is refused."""
        self._connection.request("POST", path, orjson.dumps(body), self._headers)
        with self._connection.getresponse() as response:
            answer = response.read()
            if response.status >= 300:
                raise RuntimeError(f"POST {path}: {response.status} {answer[:500].decode()}")


@contextmanager
def served(gate: Gate, url: str, folder: Path) -> Iterator[Client]:
    """Serve a database, and give a client of it."""
    raw = {"name": "Bench", "grants": ["*", "structure.*"], "rateLimit": 10_000_000}
    key = str(gate.run(Call("keys.create", TERMINAL, raw)).value["key"])
    with Server(["-m", "trellis", "serve", "--port", "0"], folder, {"TRELLIS_DATABASE_URL": url}, cores()[0]) as server:
        yield Client(server.address, key)


def _rows(gate: Gate, client: Client, engine: Engine, repetitions: int, line: Steps) -> Iterator[dict[str, Any]]:
    name = sa.text("UPDATE nodes SET external_id = 'bench-' || id")
    gate.store.write(lambda tx: tx.connection.execute(name).rowcount).result()
    ways = _ways(gate, client)
    for pair in PAIRS:
        reps: list[dict[str, float]] = []
        for number in range(repetitions + 1):
            line.say(f"{engine}: {pair.title}, {number} of {repetitions}")
            reps.append({which: _time(work) for which, work in zip(("one", "other"), ways[pair.name], strict=True)})
        yield {"engine": engine, "pair": pair.name, "reps": reps[1:]}  # the first is for warming up


def _time(work: Work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _hot_reads(gate: Gate) -> tuple[Work, Work]:
    theirs, ours = read_in_dialects(gate, INVISION, TRELLIS)
    return theirs, ours


def _ways(gate: Gate, client: Client) -> Mapping[str, tuple[Work, Work]]:
    """Return both ways of each pair."""
    dice = random.Random(TREE)
    ids = [dice.randint(1, TREE) for _ in range(_READS)]

    def run(operation: str, target: int | None = None, **raw: Any) -> Any:
        return gate.run(Call(operation, TERMINAL, raw, target)).value

    def read_tree() -> None:
        if (found := run("forums.tree")["total"]) != TREE:
            raise LookupError(f"the tree has {found} forums")

    numbers = count()

    def apply_new() -> None:
        batch = next(numbers)
        entries = [{"externalId": f"new-{batch}-{number}", "name": "Made by the bench"} for number in range(AT_ONCE)]
        client.post("/api/core/structure/apply", {"document": {"format": "trellis/1", "name": "bench", "calendars": entries}})

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
        "batch": (lambda: client.post("/api/core/batch", {"operations": steps}), create_singly),
    }
