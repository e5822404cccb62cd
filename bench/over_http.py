"""Measures the cases over HTTP: trellis, the limit and the peer, one after the other and again, each on the same core."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench import growth
from bench.cases import FORUMS, FORUMS_ON_POSTGRESQL, OURS, PEER, Case
from bench.databases import postgresql
from bench.forest import forest
from bench.growth import Site
from bench.hot import make_key
from bench.peers.fastapi_peer import seed as peer_seed
from bench.process import Server, cores, own_environment, pinned
from bench.seed import PERMISSIONS
from bench.wrk import Load, Starved, Unusable, judged, wrk
from trellis.core.keys.secret import new_secret

Say = Callable[[str], None]
Rep = dict[str, float]
_MOST: Final = 10_000_000  # a limit that is counted, and never reached
_BAD_KEYS: Final = "1000000"


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how often and how much."""

    repetitions: int
    seconds: int
    forums: int = FORUMS


@dataclass(frozen=True, slots=True)
class Databases:
    """The databases of both services, and the key that both know; that of trellis on PostgreSQL and its key, if there is one."""

    folder: Path
    key: str
    postgresql: str = ""
    key_there: str = ""

    @property
    def ours(self) -> Path:
        """The file of trellis."""
        return self.folder / "trellis.db"

    @property
    def peers(self) -> Path:
        """The file of the peer."""
        return self.folder / "peer.db"


def seeded(folder: Path, forums: int, progress: Callable[[str, int], None]) -> Databases:
    """Make both databases with the same forums and the same key."""
    key = fill_with_key(f"sqlite:///{folder}/trellis.db", forums, lambda done: progress(OURS, done))
    databases = Databases(folder, key)
    peer_seed.fill(databases.peers, key, PERMISSIONS, forest("realistic", forums)[0], lambda done: progress(PEER, done))
    return databases


@contextmanager
def with_postgresql(databases: Databases, progress: Callable[[str, int], None]) -> Iterator[Databases]:
    """Start a PostgreSQL server, and add a database there."""
    with postgresql(databases.folder) as server:
        url = server.get_uri()
        key = fill_with_key(url, FORUMS_ON_POSTGRESQL, lambda done: progress(f"{OURS}, PostgreSQL", done))
        yield replace(databases, postgresql=url, key_there=key)


def fill_with_key(url: str, forums: int, progress: Callable[[int], None], **settings: Any) -> str:
    """Fill a database of trellis, and return a key with all grants, or these settings, and a limit that is never reached."""
    site = Site("postgresql" if url.startswith("postgresql") else "sqlite", "realistic", forums, url)
    with growth.seeded(site, progress) as (gate, _):
        return make_key(gate, {"rateLimit": _MOST, **settings})


def measured(case: Case, databases: Databases, plan: Plan, say: Say) -> dict[str, list[Rep]]:
    """Measure a case: contestant → one repetition after the other. Raises Unusable if answers are not what the case says."""
    say(f"{case.title}: starting")
    with contestants(case, databases) as those:
        for name, contestant in those.items():
            say(f"{case.title}: {name}, warming up")
            _steady(case, name, contestant, 1)
        found: dict[str, list[Rep]] = {name: [] for name in those}
        for number in range(plan.repetitions):
            for name, contestant in those.items():
                say(f"{case.title}: {name}, {number + 1} of {plan.repetitions}")
                found[name].append(_steady(case, name, contestant, plan.seconds))
    return found


def _steady(case: Case, name: str, contestant: Callable[[int], Rep], seconds: int) -> Rep:
    """Measure once; once more, and for longer, where the machine had no time for it."""
    try:
        try:
            return contestant(seconds)
        except Starved:
            return contestant(seconds + 2)
    except Unusable as error:
        raise Unusable(f"{case.title}, {name}: {error}") from None


@contextmanager
def contestants(case: Case, databases: Databases) -> Iterator[dict[str, Callable[[int], Rep]]]:
    """Start those who take part in a case; give for each what measures it for so many seconds."""
    core = cores()[0]
    with ExitStack() as stack:

        def started(command: list[str], core: int | None = core, **environment: str) -> Server:
            return stack.enter_context(Server(command, databases.folder, environment, core))

        on_sqlite = case.engine == "sqlite"
        ours = {"TRELLIS_DATABASE_URL": f"sqlite:///{databases.ours}" if on_sqlite else databases.postgresql}
        if not case.cached:
            ours["TRELLIS_ANSWER_CACHE"] = "0"
        if case.key == "bad":
            ours["TRELLIS_BAD_KEY_LIMIT"] = _BAD_KEYS
        command = ["-m", "trellis", "serve", "--port", "0", "--workers", str(case.workers)]
        server = started(command, core if case.workers == 1 else None, **ours)
        service = Run(case, databases.key if on_sqlite else databases.key_there, server)
        those: dict[str, Callable[[int], Rep]] = {OURS: service}
        hello = ["-m", "bench.peers.hello"]
        if case.limit == "durable commits":
            where = str(databases.folder / "commits.db") if on_sqlite else databases.postgresql
            those[case.limit] = lambda seconds: committed(where, seconds, core)
        elif case.limit == "hello, as many bytes":
            those[case.limit] = Run(case, "", started([*hello, "--bytes", str(service.answer.body)]), bare=True)
        elif case.limit == "hello":
            those[case.limit] = Run(case, "", started(hello), bare=True)
        if on_sqlite and case.workers == 1:
            peer = started(["-m", "bench.peers.fastapi_peer"], PEER_DATABASE=str(databases.peers))
            those[PEER] = Run(case, databases.key, peer)
        yield those


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its status, its size with and without the head, its ETag, and how many records there are in all."""

    status: int
    size: int
    body: int
    etag: str
    total: int


def asked(address: str, path: str, key: str, headers: Mapping[str, str]) -> Answer:
    """Ask once, and give what came."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}", **headers})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    head = sum(len(name) + len(value) + 4 for name, value in answer.headers.items())
    line = len(f"HTTP/1.1 {answer.status} {answer.reason}\r\n\r\n")
    total = json.loads(body).get("totalResults", 0) if body[:1] == b"{" else 0
    return Answer(answer.status, line + head + len(body), len(body), answer.headers.get("ETag") or "", total)


class Run:
    """What measures one server under one case. A bare server answers the same to everything, and is only loaded."""

    def __init__(self, case: Case, key: str, server: Server, *, bare: bool = False) -> None:
        self._case = case
        self._server = server
        self._bare = bare
        self._good = key
        self._key = str(new_secret()) if case.key == "bad" else key
        if case.bad_key and not bare:
            asked(server.address, case.probe, str(new_secret()), {})
        self._seed = 0
        self._headers: dict[str, str] = {}
        if case.status == 304 and not bare:
            self._headers["If-None-Match"] = self._ask().etag
        self.answer = self._ask()
        self._judge(self.answer)

    def _ask(self) -> Answer:
        return asked(self._server.address, self._case.probe, self._key, self._headers)

    def _judge(self, answer: Answer) -> None:
        reading = self._case.mode in {"fixed", "traced", "random"}
        wanted = self._case.status if reading and not self._bare else 200
        if answer.status != wanted:
            raise Unusable(f"{self._case.title}: the answer was {answer.status} instead of {wanted}.")

    def _total(self) -> int:
        return asked(self._server.address, f"{self._case.path}?perPage=1", self._good, {}).total

    def __call__(self, seconds: int) -> Rep:
        case, server = self._case, self._server
        self._seed += 1
        mode = "fixed" if self._bare and case.limit == "hello" else case.mode
        arguments = [self._key or "none", str(self._seed), case.path]
        if mode == "fixed":
            arguments += self._headers.values()
        elif mode != "traced":
            arguments += map(str, (*case.ids, case.writes))
        before = self._total() if mode == "create" else 0
        cpu = server.cpu()
        load = wrk(server.address, mode, arguments, seconds, cores()[1], case.clients)
        cpu = server.cpu() - cpu
        size = self.answer.size if mode in {"fixed", "traced", "random"} else None
        judged(load, refusals=case.status >= 400 and not self._bare, size=size)
        self._judge(self._ask())
        if mode == "create" and self._total() - before < load.requests:
            raise Unusable(f"{load.requests} creates were answered, and {self._total() - before} forums came of them.")
        return rep_of(load, cpu, server.memory())


def rep_of(load: Load, cpu: float, memory: int) -> Rep:
    """Write down one repetition: requests a second, p50 and p99 and CPU time for a request in microseconds, bytes of memory."""
    return {
        "rate": round(load.requests / load.seconds, 1),
        "p50": round(load.p50, 1),
        "p99": round(load.p99, 1),
        "cpu": round(cpu / load.requests * 1e6, 2),
        "memory": memory,
    }


def committed(where: str, seconds: int, core: int) -> Rep:
    """Run the bare loop of commits, into a file of SQLite or a database of PostgreSQL."""
    command = [sys.executable, "-m", "bench.peers.commits", where, str(seconds)]
    done = subprocess.run(pinned(command, core), capture_output=True, text=True, check=True, env=own_environment())
    found = json.loads(done.stdout)
    return {
        "rate": round(found["requests"] / found["seconds"], 1),
        "p50": round(found["p50"], 1),
        "p99": round(found["p99"], 1),
        "cpu": round(found["cpu"], 2),
        "memory": 0,
    }
