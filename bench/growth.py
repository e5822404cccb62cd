"""Measures what operations cost as the community grows: in process, through the gate, without HTTP."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any, Final

import psycopg

from bench.cases import Engine
from bench.databases import new_database, postgresql
from bench.forest import RARE, Landmarks, Shape, forest
from bench.process import Server, cores
from bench.seed import fill
from bench.terminal import Steps
from bench.wrk import wrk
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store.migrate import migrate

Work = Callable[[], object]
_SIZES: Final = (1000, 10_000, 100_000, 1_000_000)
_SAMPLES: Final = 300
_ROUNDS: Final = 10
_PER_PAGE: Final = 25


@dataclass(frozen=True, slots=True)
class Grow:
    """How far each shape grows on each engine, and for how many seconds each operation is sampled at most."""

    seconds: float
    most: Mapping[Engine, Mapping[Shape, int]]

    @property
    def communities(self) -> list[tuple[Engine, Shape, tuple[int, ...]]]:
        """What is grown, one after the other: each with its sizes, which are measured in turn."""
        return [
            (engine, shape, tuple(size for size in _SIZES if size <= most))
            for engine, shapes in self.most.items()
            for shape, most in shapes.items()
        ]


@dataclass(frozen=True, slots=True)
class Site:
    """A database to be filled and measured in."""

    engine: Engine
    shape: Shape
    size: int
    url: str


def grown(folder: Path, grow: Grow, line: Steps) -> dict[str, list[dict[str, Any]]]:
    """Measure every operation in every size of each community: `growth` has a row for each, with its median in microseconds.

    `workers` has the bytes of memory of workers that serve the largest of the realistic communities.
    """
    rows: list[dict[str, Any]] = []
    workers: list[dict[str, Any]] = []
    with ExitStack() as stack:
        server = None
        if "postgresql" in grow.most:
            line.say("starting PostgreSQL")
            server = stack.enter_context(postgresql(folder))
        for engine, shape, sizes in grow.communities:
            started = time.perf_counter()
            with ExitStack() as databases:
                sites = []
                for size in sizes:
                    url = databases.enter_context(new_database(engine, folder, server, f"bench_{size}"))
                    sites.append(Site(engine, shape, size, url))
                rows += _rows(sites, grow.seconds, line)
                if engine == "sqlite" and shape == "realistic":
                    line.say(f"{engine}, {shape}, {sites[-1].size:,}: memory of a worker")
                    workers.append({"forums": sites[-1].size, "memory": _worker(sites[-1], folder)})
            line.done(f"{engine}, {shape}, up to {sizes[-1]:,}: {time.perf_counter() - started:.1f} s")
    return {"growth": rows, "workers": workers}


def _worker(site: Site, folder: Path) -> int:
    """Return the bytes that a worker holds in memory after reading here and there, and after pages here and there."""
    core, other = cores()
    raw = {"name": "Bench", "grants": ["*"], "rateLimit": 10_000_000}
    gate = compose(_settings(site))
    key = str(gate.run(Call("keys.create", TERMINAL, raw)).value["key"])
    gate.store.close()
    with Server(["-m", "trellis", "serve", "--port", "0"], folder, {"TRELLIS_DATABASE_URL": site.url}, core) as server:
        for mode in ("random", "pages"):
            wrk(server.address, mode, (key, "1", "/api/forums/forums", "1", str(site.size * 9 // 10)), 2, other)
        return server.memory()


def _rows(sites: Sequence[Site], seconds: float, line: Steps) -> list[dict[str, Any]]:
    """Measure each operation in all sizes, a few times in each in turn: what slows down the machine slows down all of them."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        places = []
        for site in sites:
            where = f"{site.engine}, {site.shape}, {site.size:,}"
            gate, marks = stack.enter_context(
                seeded(site, lambda done, where=where: line.say(f"{where}: seeded {done:,}"))  # type: ignore[misc]
            )
            places.append(Place(gate, site.shape, site.size, marks))
        for kind in (Place.reads, Place.writes):
            works = [kind(place) for place in places]
            for name in works[0]:
                line.say(f"{sites[0].engine}, {sites[0].shape}: {name}")
                if kind is Place.reads:
                    for work in works:
                        work[name]()  # until statements are compiled and pages are in memory
                samples: list[list[float]] = [[] for _ in sites]
                for _ in range(_ROUNDS):
                    for work, found in zip(works, samples, strict=True):
                        found.extend(timed(work[name], seconds / _ROUNDS, _SAMPLES // _ROUNDS))
                rows += [
                    {
                        "engine": site.engine,
                        "shape": site.shape,
                        "forums": site.size,
                        "operation": name,
                        "median": round(median(found) * 1e6, 1),
                        "samples": len(found),
                    }
                    for site, found in zip(sites, samples, strict=True)
                ]
    return rows


# --- databases ----------------------------------------------------------------------------------------------------


def _settings(site: Site) -> Settings:
    return Settings.load({"TRELLIS_DATABASE_URL": site.url, "TRELLIS_DATABASE_POOL": "2"}, None)


@contextmanager
def seeded(site: Site, progress: Callable[[int], None]) -> Iterator[tuple[Gate, Landmarks]]:
    """Fill a database, and give its gate."""
    settings = _settings(site)
    migrate(settings)
    gate = compose(settings)
    try:
        forums, marks = forest(site.shape, site.size)
        fill(gate, forums, progress)
        if site.engine == "postgresql":  # what autovacuum does within a minute
            with psycopg.connect(site.url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
        yield gate, marks
    finally:
        gate.store.close()


# --- operations ---------------------------------------------------------------------------------------------------


def timed(work: Work, seconds: float, most: int = _SAMPLES) -> list[float]:
    """Do it again and again, for so long or so often; give how long each time took, in seconds. Once at least.

    StopIteration says that there is nothing more to do it on.
    """
    took: list[float] = []
    end = time.perf_counter() + seconds
    with suppress(StopIteration):
        while len(took) < most:
            started = time.perf_counter()
            work()
            now = time.perf_counter()
            took.append(now - started)
            if now > end:
                break
    return took


class Place:
    """A community of one shape and size, and what is done in it."""

    def __init__(self, gate: Gate, shape: Shape, size: int, marks: Landmarks) -> None:
        self._gate = gate
        self._size = size
        self._marks = marks
        self._dice = random.Random(size)
        # The parents under which things are made, and moved to. In a flat community there is only the top level.
        self._parent: int | None = None if shape == "flat" else 1
        self._other: int | None = None if shape == "flat" else 2
        self._pages = -(-size // _PER_PAGE)
        self._made: list[int] = []

    def _run(self, operation: str, target: int | None = None, **raw: Any) -> Any:
        return self._gate.run(Call(f"forums.{operation}", TERMINAL, raw, target)).value

    def _under(self) -> str | int:
        return "root" if self._parent is None else self._parent

    def reads(self) -> dict[str, Work]:
        """Return the reading operations, by name."""
        siblings = self._run("list", parentId=self._under(), perPage=1)["totalResults"]
        middle = max(1, self._pages // 2)
        return {
            "read one": lambda: self._run("get", self._dice.randint(1, self._size)),
            "path of a node 50 deep": lambda: self._run("get", self._marks.deepest),
            "first page": lambda: self._run("list"),
            "page in the middle": lambda: self._run("list", page=middle),
            "last page": lambda: self._run("list", page=self._pages),
            "page in the middle, by name": lambda: self._run("list", page=middle, sortBy="name"),
            "filter by parent": lambda: self._run("list", parentId=self._under()),
            "filter by parent, by place": lambda: self._run("list", parentId=self._under(), sortBy="position"),
            "by parent and place, page in the middle": lambda: self._run(
                "list", parentId=self._under(), sortBy="position", page=max(1, siblings // _PER_PAGE // 2)
            ),
            "search": lambda: self._run("list", search=RARE),
        }

    def writes(self) -> dict[str, Work]:
        """Return the writing operations, by name, in the order in which they are to run."""
        siblings = self._run("list", parentId=self._under(), perPage=1)["totalResults"]
        subtrees = iter(self._marks.subtrees)
        gone: Iterator[int] = iter(self._made)
        places = cycle((0, siblings // 2))
        return {
            "create at the end": self._create,
            "create in the middle": lambda: self._made.append(self._create(position=siblings // 2)),
            "move": lambda: self._run("update", self._leaf(), parentId=self._other, position=next(places)),
            "delete a leaf": lambda: self._run("delete", next(gone)),
            "delete a subtree of 1 %": lambda: self._run("delete", next(subtrees), deleteChildrenOrMove=-1),
        }

    def _create(self, **place: int) -> int:
        return int(self._run("create", name="Made by the bench", parentId=self._parent, **place)["id"])

    def _leaf(self) -> int:
        """Return one that has nothing below it, or, in a deep community, less than a chain."""
        return self._dice.randint(self._size // 2, self._size * 9 // 10)
