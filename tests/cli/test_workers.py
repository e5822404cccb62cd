"""Several workers of a running service: how they are born, replaced and buried, and what becomes of them without their parent."""

import errno
import os
import re
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.api_fixtures import MakeService, serve
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.sqlite_file import open_sqlite
from tests.wait import wait_until
from trellis.cli import main, workers
from trellis.cli import serve as cli_serve
from trellis.settings import Settings

__all__ = ["serve"]

TWO = ("--workers", "2")


def serve_with(changes: Mapping[str, object]) -> None:
    """Run the command with changes of the module that starts workers."""
    for name, value in changes.items():
        setattr(workers, name, value)
    main()


def serve_when_told(*arguments: Any) -> None:
    """Be a worker: the one that comes first begins when there is a file `go`."""
    with suppress(FileExistsError):
        Path("first").touch(exist_ok=False)
        wait_until(Path("go").exists)
    workers._serve(*arguments)  # in this process it is as it was


def serve_where_a_process_cannot_be_made(which: int) -> None:
    """Run the command on a machine that has no memory for one process, by its number from 0."""
    start, numbers = BaseProcess.start, count()

    def fail(process: BaseProcess) -> None:
        if process.name == "trellis-worker" and next(numbers) == which:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        start(process)

    BaseProcess.start = fail  # type: ignore[method-assign, assignment]  # in the process of the service alone
    main()


def serve_and_be_told_to_reload_while_it_starts() -> None:
    """Run the command, which gets SIGHUP before it looks at the database."""
    bring_up_to_date = cli_serve._bring_up_to_date

    def reload(settings: Settings) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        bring_up_to_date(settings)

    cli_serve._bring_up_to_date = reload
    main()


IMPATIENT = partial(serve_with, {"LONGEST": 1.0, "TRIES": 3})


def pids(output: str, what: str = "serves") -> list[int]:
    return [int(pid) for pid in re.findall(rf"Worker (\d+) {what}", output)]


def serving(service: Service, count: int) -> list[int]:
    """Wait until so many workers have begun to serve; give their process ids."""
    wait_until(lambda: len(pids(service.output)) >= count)
    return pids(service.output)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):  # it may have gone in between
        return False


def test_a_worker_that_is_killed_is_replaced_and_the_log_says_so(serve: MakeService) -> None:
    service = serve(options=TWO)
    killed, other = serving(service, 2)
    os.kill(killed, signal.SIGKILL)
    third = serving(service, 3)[2]
    assert f"Worker {killed} ended by itself (SIGKILL); another one is started." in service.output
    assert pids(service.output, "started") == [*pids(service.output, "started")[:2], third]
    assert set(pids(service.output, "started")) == {killed, other, third}
    assert service.client.get(f"{service.address}/healthz").status_code == 200
    os.kill(other, signal.SIGRTMIN + 1)  # which has no name
    fourth = serving(service, 4)[3]
    assert f"Worker {other} ended by itself (signal {signal.SIGRTMIN + 1}); another one is started." in service.output
    assert service.terminate() == 0
    assert sorted(pids(service.output, "ended\\.")) == sorted((third, fourth))
    assert not any(map(runs, (killed, other, third, fourth)))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_process_that_cannot_be_made_is_tried_again_and_ends_nothing(serve: MakeService) -> None:
    service = serve(options=TWO, program=partial(serve_where_a_process_cannot_be_made, 2))
    killed, other = serving(service, 2)
    os.kill(killed, signal.SIGKILL)
    assert len(serving(service, 3)) == 3
    assert "No worker could be started (Resource temporarily unavailable)." in service.output
    assert runs(other)
    assert service.client.get(f"{service.address}/healthz").status_code == 200
    assert service.terminate() == 0


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_process_that_cannot_be_made_replaces_nobody(serve: MakeService) -> None:
    service = serve(options=TWO, program=partial(serve_where_a_process_cannot_be_made, 2))
    old = serving(service, 2)
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "No worker could be started" in service.output)
    assert re.search(r"could be started \(Resource temporarily unavailable\); worker \d+ stays", service.output)
    assert all(map(runs, old))
    service.process.send_signal(signal.SIGHUP)
    serving(service, 4)
    wait_until(lambda: not any(map(runs, old)))
    assert service.terminate() == 0


def test_sighup_replaces_every_worker_and_no_request_is_lost(serve: MakeService, key: MakeKey) -> None:
    service, text = serve(options=TWO), key("*")
    old = serving(service, 2)
    enough, statuses = threading.Event(), list[int]()

    def ask() -> None:
        while not enough.is_set():
            answer = service.client.post(
                f"{service.address}/api/calendar/calendar",
                json={"name": "C"},
                headers={"Authorization": f"Bearer {text}", "Connection": "close"},
            )
            statuses.append(answer.status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    service.process.send_signal(signal.SIGHUP)
    try:
        new = serving(service, 4)[2:]
        wait_until(lambda: not any(map(runs, old)))
    finally:
        enough.set()
        asking.join()
    assert set(statuses) == {201}
    assert all(map(runs, new))
    assert [f"to replace {pid}" in service.output for pid in old] == [True, True]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_worker_that_dies_while_it_is_replaced_has_one_successor(serve: MakeService, tmp_path: Path) -> None:
    (tmp_path / "first").touch()
    service = serve(options=TWO, program=partial(serve_with, {"STEADY": 0.0, "_serve": serve_when_told}))
    old = serving(service, 2)
    (tmp_path / "first").unlink()  # so that the next one waits
    service.process.send_signal(signal.SIGHUP)
    wait_until((tmp_path / "first").exists)
    killed = int(re.findall(r"to replace (\d+)", service.output)[0])
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: f"Worker {killed} ended by itself (SIGKILL)" in service.output)
    (tmp_path / "go").touch()
    wait_until(lambda: not any(map(runs, old)))
    assert len(list(filter(runs, pids(service.output, "started")))) == 2


@pytest.mark.parametrize("options", [(), TWO])
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_sighup_while_it_starts_is_not_its_end(serve: MakeService, options: tuple[str, ...]) -> None:
    service = serve(options=options, program=serve_and_be_told_to_reload_while_it_starts)
    assert service.client.get(f"{service.address}/healthz").status_code == 200
    assert service.terminate() == 0


def test_a_worker_that_begins_later_has_the_settings_of_the_others(serve: MakeService, key: MakeKey, tmp_path: Path) -> None:
    service, text = serve(options=TWO), key("*")
    old = serving(service, 2)
    (tmp_path / ".env").write_text("TRELLIS_COMMUNITY_NAME=Another\nTRELLIS_RATE_LIMIT=7\n")
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(pids(service.output)) == 4 and not any(map(runs, old)))
    answer = service.call("GET", "core/hello", text)
    assert answer.json()["communityName"] == service.settings.community_name
    assert answer.headers["X-RateLimit-Limit"] == str(service.settings.rate_limit)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_sighup_with_one_worker_is_not_its_end(serve: MakeService) -> None:
    service = serve()
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "SIGHUP replaces workers" in service.output)
    assert service.client.get(f"{service.address}/healthz").status_code == 200


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # they send themselves SIGTERM, which is tried on both
def test_workers_end_when_their_parent_is_killed(serve: MakeService) -> None:
    service = serve(options=TWO, program=("-m", "trellis"))  # not forked: what is left open to them may keep them
    left = serving(service, 2)
    service.kill()
    wait_until(lambda: not any(map(runs, left)))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_cannot_start_is_not_started_for_ever(serve: MakeService, settings: Settings) -> None:
    service = serve(options=TWO, program=IMPATIENT)
    served = serving(service, 2)
    with closing(open_sqlite(settings)) as other:
        other.execute("UPDATE alembic_version SET version_num = '0001'")
    for pid in served:
        os.kill(pid, signal.SIGKILL)
    assert service.process.wait(300) == 1
    sentence = "No worker can be started: 3 tries have failed, the last one with status 1. The log says why."
    assert sentence in service.output.splitlines()  # before or after the last line of the log, which another thread writes
    assert 2 <= service.output.count("could not start (status 1)") <= 4  # beside the end of those that served
    assert pids(service.output) == served


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_workers_that_end_as_soon_as_they_serve_are_not_started_for_ever(serve: MakeService) -> None:
    service, killed = serve(options=TWO, program=IMPATIENT), set[int]()

    def kill_those_that_serve() -> bool:
        for pid in set(pids(service.output)) - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        return not service.running

    wait_until(kill_those_that_serve)
    assert service.process.wait(60) == 1
    assert "No worker can be started: 3 tries have failed, the last one with SIGKILL." in service.output
    assert 3 <= len(killed) <= 6  # each try may have begun both


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_worker_that_is_stuck_is_killed_and_replaced_and_one_that_is_slow_to_start_is_not(
    serve: MakeService, tmp_path: Path
) -> None:
    service = serve(options=TWO, program=partial(serve_with, {"SILENT": 8.0, "_serve": serve_when_told}))
    (stuck,) = serving(service, 1)
    os.kill(stuck, signal.SIGSTOP)
    wait_until(lambda: f"Worker {stuck} has given no sign of life for too long, and is killed." in service.output)
    wait_until(lambda: not runs(stuck))
    (slow,) = set(pids(service.output, "started")) - {stuck}
    assert pids(service.output) == [stuck], "the other one has been silent for longer"
    (tmp_path / "go").touch()
    third = serving(service, 3)[2]
    assert pids(service.output) == [stuck, slow, third]
    assert set(pids(service.output, "started")) == {stuck, slow, third}, "nobody else was replaced"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_worker_that_is_stuck_when_it_is_replaced_is_killed(serve: MakeService) -> None:
    service = serve(options=TWO, program=partial(serve_with, {"END": 6.0}))
    stuck = serving(service, 2)[0]
    os.kill(stuck, signal.SIGSTOP)
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: f"Worker {stuck} does not end, and is killed." in service.output)
    wait_until(lambda: not runs(stuck))
    serving(service, 4)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_nobody_is_replaced_because_the_machine_was_stopped(serve: MakeService) -> None:
    service = serve(options=TWO, program=partial(serve_with, {"SILENT": 4.0}))
    both = serving(service, 2)
    processes = (service.process.pid, *both)
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(6.0)  # longer than a worker may be silent
    for pid in processes:
        os.kill(pid, signal.SIGCONT)
    service.process.send_signal(signal.SIGHUP)
    serving(service, 4)
    assert "no sign of life" not in service.output
