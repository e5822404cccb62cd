"""An hour of a service in some seconds: what happens to it is in its log, short, and its metrics and /readyz agree meanwhile."""

import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api_client import read_refusal
from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.wait import wait_until

TOKEN = "a-long-text-that-nobody-guesses"  # of the tests
FORUMS = "/forums/forums"
WORKER = re.compile(r"Worker (\d+) serves")
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
        with ThreadPoolExecutor(4) as callers:
            return {told["trellis_requests_total"] for told in callers.map(lambda _: self.read_metrics(), range(8))} == {requests}

    def agrees(self, *, ready: bool, database: bool = True) -> bool:
        """Return whether /readyz of whichever worker says this, and the metrics too."""

        def ask(_number: int) -> int:
            with httpx.Client(trust_env=False) as client:  # on a connection of its own, so that either worker may answer
                return client.get(f"{self.service.address}/readyz").status_code

        with ThreadPoolExecutor(4) as callers:
            statuses = set(callers.map(ask, range(8)))
        told = self.read_metrics()
        figures = (told["trellis_workers"], told["trellis_workers_ready"], told["trellis_database_up"])
        return statuses == {200 if ready else 503} and figures == (2, 2 if ready else 0, database)


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits the files of another process")
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_an_hour_is_told_in_a_few_lines_and_metrics_and_readiness_agree(
    serve: MakeService, key: MakeKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "full"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(TELL_NO_ROOM.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    text = key("*")
    service = serve(options=("--workers", "2"), metrics_token=TOKEN)
    seen = Seen(service)
    file = Path(service.settings.database_url.removeprefix("sqlite:///"))

    def write() -> httpx.Response:
        return service.call("POST", FORUMS, text, json={"name": "Garden", "description": "x" * 20_000})

    def load() -> None:
        """Be a quiet hour of many callers, all of whom get what they ask for."""
        calls: list[Callable[[], httpx.Response]] = [write] * 10 + [lambda: service.call("GET", FORUMS, text)] * 50
        with ThreadPoolExecutor(8) as callers:
            statuses = list(callers.map(lambda call: call().status_code, calls))
        assert (statuses.count(201), statuses.count(200)) == (10, 50)

    wait_until(lambda: seen.agrees(ready=True))
    load()

    with taken_away(file):
        wait_until(lambda: seen.agrees(ready=False, database=False))
        read_refusal(write(), 503, "BUSY")
    wait_until(lambda: seen.agrees(ready=True))
    load()

    with full_disk(flag, seen.workers):
        wait_until(lambda: seen.agrees(ready=False))
        refused = read_refusal(write(), 503, "BUSY")
        assert refused["detail"].startswith("The database cannot grow: the disk is full.")
        assert service.call("GET", FORUMS, text).status_code == 200, "what is there can be read"
        assert seen.agrees(ready=False)
    wait_until(lambda: seen.agrees(ready=True))
    load()

    sent = 3 * 60 + 3  # three loads, and three calls on their own
    wait_until(lambda: seen.has_counted(sent))
    killed = seen.workers[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(seen.workers) == 3)
    wait_until(lambda: seen.agrees(ready=True))
    assert seen.has_counted(sent), "no counter goes back"
    load()
    assert service.terminate() == 0

    told = [line for line in service.output.splitlines() if "Z " in line[:25]]
    story = "\n".join(told)
    assert len(service.output.splitlines()) < 60, service.output
    assert "Traceback" not in service.output
    happened = (
        *(r"listens on .* in 2 processes", r"Worker \d+ serves"),
        *(r"ERROR .*The database cannot be used", r"WARNING .*The database can be (used|written to) again"),
        *(r"ERROR .*The database cannot grow: the disk is full", r"WARNING .*The database can be written to again"),
        *(rf"ERROR .*Worker {killed} ended by itself \(SIGKILL\)", r"Worker \d+ serves", r"Trellis has stopped\.\Z"),
    )
    assert re.search(r"[\s\S]*?".join(happened), story), service.output
