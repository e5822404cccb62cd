"""What is measured over HTTP, and what is to be reached."""

from dataclasses import dataclass
from typing import Final, Literal

Limit = Literal["hello", "hello, as many bytes", "durable commits"]
Engine = Literal["sqlite", "postgresql"]
OURS: Final = "trellis"
PEER: Final = "FastAPI peer"
FORUMS: Final = 100_000
FORUMS_ON_POSTGRESQL: Final = 10_000  # which takes longer to fill
_PATH: Final = "/api/forums/forums"
_HOT: Final = f"{_PATH}/4711"


@dataclass(frozen=True, slots=True)
class Case:
    """One load: what wrk sends, what the answers are, what it is held against, and whether trellis answers from memory."""

    name: str
    title: str
    mode: Literal["fixed", "traced", "random", "create", "update", "mixed"]
    limit: Limit | None
    cached: bool = True
    path: str = _PATH
    ids: tuple[int, int] = (1, FORUMS)
    status: int = 200
    key: Literal["good", "bad"] = "good"
    clients: int = 32
    writes: int = 0  # of a hundred requests of a mixed load
    engine: Engine = "sqlite"
    workers: int = 1  # beyond one they use all cores
    bad_key: bool = False  # whether somebody has sent a bad key before

    @property
    def probe(self) -> str:
        """A path that is answered like those of this case."""
        return f"{self.path}/{self.ids[0] + 4710}" if self.mode == "random" else self.path


CASES: Final = (
    Case("read-hot", "read one, hot", "fixed", "hello", path=_HOT),
    Case("read-random", f"read one, random over {FORUMS:,}", "random", "hello"),
    Case("read-random-off", f"read one, random over {FORUMS:,}, cache off", "random", "hello", cached=False),
    Case("list-25", "list 25, hot", "fixed", "hello, as many bytes", path=_PATH),
    Case("list-25-off", "list 25, cache off", "fixed", "hello, as many bytes", cached=False, path=_PATH),
    Case("list-1000", "list 1000, hot", "fixed", "hello, as many bytes", path=f"{_PATH}?perPage=1000", clients=4),
    Case("not-modified", "304 Not Modified", "fixed", "hello", path=_HOT, status=304),
    Case("traced", "read one, hot, headers that change", "traced", "hello", path=_HOT),
    Case("after-bad-key", "read one, hot, after a bad key", "fixed", "hello", path=_HOT, bad_key=True),
    Case("mixed-1", "mixed: 99 reads, 1 write", "mixed", "hello", ids=(1, 1000), writes=1),
    Case("mixed", "mixed: 95 reads, 5 writes", "mixed", "hello", ids=(1, 1000), writes=5),
    Case("mixed-20", "mixed: 80 reads, 20 writes", "mixed", "hello", ids=(1, 1000), writes=20),
    Case("create", "create", "create", "durable commits", ids=(1, 5000), status=201),
    Case("update", "update", "update", "durable commits", ids=(1, 1000)),
    Case("pg-read-hot", "read one, hot, PostgreSQL", "fixed", "hello", path=_HOT, engine="postgresql"),
    Case(
        "pg-read-random-off",
        f"read one, random over {FORUMS_ON_POSTGRESQL:,}, cache off, PostgreSQL",
        "random",
        "hello",
        cached=False,
        ids=(1, FORUMS_ON_POSTGRESQL),
        engine="postgresql",
    ),
    Case("pg-create", "create, PostgreSQL", "create", "durable commits", ids=(1, 5000), status=201, engine="postgresql"),
    Case("two-workers", "read one, hot, two workers", "fixed", None, path=_HOT, workers=2),
    Case("refused", "refused key", "fixed", "hello", path=_HOT, status=401, key="bad"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached: `case` at `bound` times the rate of `against`."""

    case: str
    against: str
    bound: float


TARGETS: Final = (
    Target("read-hot", "hello", 0.70),
    Target("list-25", "hello, as many bytes", 0.70),
    Target("not-modified", "hello", 0.70),
    Target("traced", "hello", 0.70),
    Target("after-bad-key", "hello", 0.70),
    Target("mixed", "hello", 0.35),
    Target("mixed-1", "hello", 0.50),
    Target("mixed-20", "hello", 0.15),
    Target("read-random-off", "hello", 0.42),
    Target("list-25-off", "hello, as many bytes", 0.20),
    Target("create", "durable commits", 0.80),
    Target("update", "durable commits", 0.75),
    Target("pg-read-hot", "hello", 0.70),
    Target("pg-read-random-off", "hello", 0.08),
    Target("pg-create", "durable commits", 0.50),
)


@dataclass(frozen=True, slots=True)
class Paced:
    """A load at a fixed rate, half of the best: the p99 of its reads is to be at most `bound` times hello's at that rate."""

    name: str
    title: str
    best: str  # the case whose best rate it is half of
    bound: float
    ids: tuple[int, int]  # of the forums that it reads at random
    writes: int = 0  # of a hundred requests


PACED: Final = (
    Paced("paced-hot", "hot reads", "read-hot", 2.5, (4711, 4711)),
    Paced("paced-mixed", "reads in mixed 95/5", "mixed", 5.0, (1, 1000), writes=5),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """What may grow, and how much, from 1,000 forums to 1,000,000."""

    operations: tuple[str, ...]
    bound: float


_BY_PARENT: Final = ("filter by parent", "filter by parent, by place", "by parent and place, page in the middle")
GROWTHS: Final = (
    Growth(("read one",), 1.6),
    Growth(("create at the end", "create in the middle", "move"), 1.3),
    Growth(("first page", "page in the middle", "last page", "page in the middle, by name", *_BY_PARENT), 3.0),
)
MEMORY: Final = 200 * 2**20  # bytes that a worker may have over a million forums
MEMORY_OF_CASES: Final = 140 * 2**20  # and over those of the cases


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ways to do the same, or one work in two situations: the first is to take at most `bound` times as long as the other."""

    name: str
    title: str
    other: str
    bound: float


TREE: Final = 10_000  # forums
LARGE_TREE: Final = 100_000  # forums of which a key sees a part
AT_ONCE: Final = 1000  # records of a page, operations of a batch
PAIRS: Final = (
    Pair("external-id", "read one by external id", "read one by id", 1.25),
    Pair("tree", f"tree of {TREE:,}", f"{TREE // AT_ONCE} list pages of {AT_ONCE:,}", 3.0),
    Pair("tail", f"p99 of reads during an apply of {TREE:,} new nodes", "p99 of reads with nothing beside", 3.0),
    Pair("apply", f"apply of {AT_ONCE:,} new nodes", f"{AT_ONCE:,} single creates by one client", 0.2),
    Pair("plan", f"plan over {TREE:,} nodes without a change", "export of them", 3.0),
    Pair("dialect", "read one in the dialect of Invision, hot", "read one in ours, hot", 1.1),
    Pair("bound-read", "read one by a key with bounds, hot", "read one, hot", 1.25),
    Pair("metrics", "read one with metrics, hot, by processor time", "without metrics", 1.1),
    Pair("mcp", "read one over MCP, hot, by one client", "the same over REST", 2.0),
    Pair("batch", f"batch of {AT_ONCE:,} creates", f"{AT_ONCE:,} single creates by one client", 1.0),
    Pair("changes", f"batch of {AT_ONCE:,} changes, and its undo", f"{AT_ONCE:,} single changes by one client", 1.0),
    Pair("bound-list", f"list of 25 within a part of {LARGE_TREE:,} nodes", "list of 25 of them all", 2.0),
)
