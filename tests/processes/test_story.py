"""An hour of a service in some seconds: what happens to it is in its log, short, and its metrics and /readyz agree meanwhile."""

import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api_client import read_refusal
from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.stoppable_database import StoppableDatabase
from tests.wait import wait_until
from trellis.settings import Settings

TOKEN = "a-long-text-that-nobody-guesses"  # of the tests
FORUMS = "/forums/forums"
WORKER = re.compile(r"Worker (\d+) serves")
AGAIN = re.compile(r"WARNING .*The database can be (used|written to) again")
Outage = tuple[Settings, Callable[[], AbstractContextManager[None]]]  # settings with a database, and what takes that away
SHORT: dict[str, Any] = {f"database_{what}_timeout": 1 for what in ("connect", "pool", "read", "write")} | {"busy_timeout": 1}
SMALL = 65_536  # bytes to which files may grow on the full disk: more than the log has, less than the database's
# Python runs this in each process of the service before anything else.
TELL_NO_ROOM = """
import os
real = os.statvfs
def statvfs(path):
    found = real(path)
    return os.statvfs_result((*found[:3], 0, 0, *found[5:])) if os.path.exists({flag!r}) else found
os.statvfs = statvfs
"""


@dataclass(frozen=True)
class Seen:
    """A service, as those who look after it see it."""

    service: Service

    @property
    def workers(self) -> list[int]:
        """The processes that have served so far."""
        return [int(number) for number in WORKER.findall(self.service.output)]

    def read_metrics(self) -> dict[str, float]:
        """Return the metrics, those with labels as sums."""
        with httpx.Client(trust_env=False) as client:
            text = (
                client.get(f"{self.service.address}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).raise_for_status().text
            )
        found: dict[str, float] = {}
        for sample in (sample for family in text_string_to_metric_families(text) for sample in family.samples):
            found[sample.name] = found.get(sample.name, 0) + sample.value
        return found

    def has_counted(self, requests: int) -> bool:
        """Return whether either worker tells of so many requests; each learns within a second what the other has counted."""
        if self.read_metrics()["trellis_requests_total"] != requests:
            return False
        with ThreadPoolExecutor(4) as callers:
            return {told["trellis_requests_total"] for told in callers.map(lambda _: self.read_metrics(), range(8))} == {requests}

    def has_shared(self, worker: int, requests: int) -> bool:
        """Return whether the other workers know what this one has counted, so that nothing of it is lost when it is killed."""
        os.kill(worker, signal.SIGSTOP)  # so that the others answer: its own answer would tell what it has not shared yet
        try:
            return self.has_counted(requests)
        finally:
            os.kill(worker, signal.SIGCONT)

    def agrees(self, *, ready: bool, database: bool = True) -> bool:
        """Return whether /readyz of whichever worker says this, and the metrics too."""
        told = self.read_metrics()
        figures = [told[f"trellis_{name}"] for name in ("workers", "workers_ready", "database_up")]
        expected: list[float] = [2, 2 if ready else 0, database]

        def ask(_number: int) -> int:
            with httpx.Client(trust_env=False) as client:  # on a connection of its own, so that either worker may answer
                return client.get(f"{self.service.address}/readyz").status_code

        with ThreadPoolExecutor(4) as callers:
            return figures == expected and set(callers.map(ask, range(8))) == {200 if ready else 503}


@contextmanager
def full_disk(flag: Path, processes: list[int]) -> Iterator[None]:
    """Let no file of these processes grow any more, and say that no byte is free."""
    limits = {process: resource.prlimit(process, resource.RLIMIT_FSIZE) for process in processes}
    flag.touch()
    for process, (_, hard) in limits.items():
        resource.prlimit(process, resource.RLIMIT_FSIZE, (SMALL, hard))
    try:
        yield
    finally:
        for process, usual in limits.items():
            resource.prlimit(process, resource.RLIMIT_FSIZE, usual)
        flag.unlink()


@contextmanager
def taken_away(file: Path) -> Iterator[None]:
    """Take the file of a database away, as a mount that is lost does, and bring it back."""
    aside = file.rename(file.with_name("aside"))
    try:
        yield
    finally:
        aside.rename(file)


@contextmanager
def stopped(server: StoppableDatabase) -> Iterator[None]:
    """Let a server take what is sent and answer nothing, and then answer."""
    server.stop()
    try:
        yield
    finally:
        server.go_on()


@pytest.fixture
def outage(settings: Settings, engine: str) -> Iterator[Outage]:
    """This test's database, to be taken away."""
    if engine == "sqlite":
        yield settings, partial(taken_away, Path(settings.database_url.removeprefix("sqlite:///")))
        return
    with StoppableDatabase(settings.database_url) as server:
        yield replace(settings, database_url=server.url), partial(stopped, server)


@dataclass(frozen=True)
class Callers:
    """Those who use a service."""

    service: Service
    key: str
    statuses: list[int] = field(default_factory=list)

    def write(self) -> httpx.Response:
        """Create a forum that takes some room."""
        return self._call("POST", json={"name": "Garden", "description": "x" * 20_000})

    def read(self) -> httpx.Response:
        """List the forums."""
        return self._call("GET")

    def _call(self, method: str, **body: Any) -> httpx.Response:
        answer = self.service.call(method, FORUMS, self.key, **body)
        self.statuses.append(answer.status_code)
        return answer

    def load(self) -> None:
        """Be a quiet hour of many, all of whom get what they ask for; where the limits are short, the first time or a later one."""

        def ask(call: Callable[[], httpx.Response]) -> int:
            status = 503

            def is_served() -> bool:
                nonlocal status
                status = call().status_code
                return status != 503

            wait_until(is_served)
            return status

        with ThreadPoolExecutor(8) as callers:
            statuses = list(callers.map(ask, [self.write] * 5 + [self.read] * 20))
        assert (statuses.count(201), statuses.count(200)) == (5, 20)


@pytest.fixture
def flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that tells the services of a test that no byte is free."""
    flag = tmp_path / "full"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(TELL_NO_ROOM.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return flag


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits the files of another process")
def test_an_hour_is_told_in_a_few_lines_and_metrics_and_readiness_agree(
    serve: MakeService, key: MakeKey, outage: Outage, flag: Path
) -> None:
    settings, take_away = outage
    is_file = settings.database_url.startswith("sqlite")
    short = {} if is_file else SHORT
    asks_flag = ("-m", "trellis") if is_file else None  # a Python of its own, which runs what the flag needs as it starts
    service = serve(options=("--workers", "2"), program=asks_flag, metrics_token=TOKEN, database_url=settings.database_url, **short)
    seen, callers = Seen(service), Callers(service, key("*"))

    wait_until(lambda: seen.agrees(ready=True))
    callers.load()

    with take_away():
        wait_until(lambda: seen.agrees(ready=False, database=False))
        read_refusal(callers.write(), 503, "BUSY")
    wait_until(lambda: seen.agrees(ready=True))
    callers.load()

    if is_file:  # the disk of a server is not ours to watch
        with full_disk(flag, seen.workers):
            wait_until(lambda: seen.agrees(ready=False))
            refused = read_refusal(callers.write(), 503, "BUSY")
            assert refused["detail"].startswith("The database cannot grow: the disk is full.")
            assert callers.read().status_code == 200, "what is there can be read"
            wait_until(lambda: seen.agrees(ready=False))
        wait_until(lambda: seen.agrees(ready=True))
        callers.load()

    wait_until(lambda: callers.read().status_code == 200 and AGAIN.search(service.output))  # who is killed may be the first to tell
    killed = seen.workers[0]
    wait_until(lambda: seen.has_shared(killed, len(callers.statuses)))
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(seen.workers) == 3)
    wait_until(lambda: seen.agrees(ready=True))
    wait_until(lambda: seen.has_counted(len(callers.statuses)))  # nothing is lost with the worker
    callers.load()
    assert service.terminate() == 0

    told = [line for line in service.output.splitlines() if "Z " in line[:25]]
    story = "\n".join(told)
    assert len(service.output.splitlines()) < 60, service.output
    assert "Traceback" not in service.output
    away = r"ERROR .*The database cannot be used" if is_file else r"The database could not be used"
    full = r"ERROR .*The database cannot grow: the disk is full", r"WARNING .*The database can be written to again"
    happened = (
        *(r"listens on .* in 2 processes", r"Worker \d+ serves"),
        *(away, AGAIN.pattern),
        *(full if is_file else ()),
        *(rf"ERROR .*Worker {killed} ended by itself \(SIGKILL\)", r"Worker \d+ serves", r"Trellis has stopped\.\Z"),
    )
    assert re.search(r"[\s\S]*?".join(happened), story), service.output
