"""Who holds an endpoint and has ended is not waited for; who may be running is."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixture_types import Run
from tests.forked import ForkedProcess
from tests.program import running
from tests.wait import GIVE_UP, wait_until
from tests.webhook_receiver import Receiver
from tests.webhooks import claiming_process
from tests.webhooks.conftest import deliver
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.webhooks.holder import has_ended, name_worker
from trellis.webhooks.worker import DeliveryWorker

PROGRAM = Path(claiming_process.__file__)
pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="only Linux tells which processes there are")


def stopped_clock() -> float:
    """A clock by which no lease ever ends."""
    return 1000.0


def test_a_restarted_process_takes_over_its_own_however_short_it_lives(
    gate: Gate, settings: Settings, run: Run, receiver: Receiver, hook: dict[str, Any], tmp_path: Path
) -> None:
    """As in a crash loop: each life is shorter than the lease, and each delivers what is due."""
    for life in range(3):
        (output := tmp_path / str(life)).write_bytes(b"")
        crashing = ForkedProcess([settings.database_url], tmp_path, os.environ, output, claiming_process.main)
        try:
            wait_until(lambda output=output: output.read_text() == "held\n")  # type: ignore[misc]
            run("forums.create", name=f"Forum {life}")
            asyncio.run(deliver(DeliveryWorker(gate, clock=stopped_clock)))
            assert len(receiver.received) == life, "it runs, and is waited for"
        finally:
            crashing.kill()
            crashing.wait(GIVE_UP)
        asyncio.run(deliver(DeliveryWorker(gate, clock=stopped_clock)))
        assert [one.name for one in receiver.received] == [f"Forum {number}" for number in range(life + 1)]


@pytest.mark.either_engine
def test_one_that_was_killed_and_not_yet_cleared_away_has_ended(gate: Gate, settings: Settings, hook: dict[str, Any]) -> None:
    with running([sys.executable, PROGRAM, settings.database_url], stdout=subprocess.PIPE, text=True) as crashing:
        assert crashing.stdout is not None
        assert crashing.stdout.readline() == "held\n"
        os.kill(crashing.pid, 9)
        os.waitid(os.P_PID, crashing.pid, os.WEXITED | os.WNOWAIT)
        place, _, _, _ = name_worker().split("/")
        assert has_ended(f"{place}/{crashing.pid}/1/abc")


def test_only_what_is_known_to_have_ended_has(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = name_worker()
    place, pid, began, token = mine.split("/")
    assert not has_ended(mine)
    assert not has_ended(name_worker()), "another worker of this process"
    assert has_ended(f"{place}/{pid}/{int(began) - 1}/{token}"), "the number has been given to another process since"
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert has_ended(f"{place}/{gone.pid}/{began}/{token}")
    for elsewhere in (f"another:boot:1/{gone.pid}/{began}/{token}", f"host/{gone.pid}/abcd1234", "", f"{place}/{gone.pid}/-/x"):
        assert not has_ended(elsewhere)


def test_a_container_takes_over_from_the_one_before_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = name_worker("pod-0")
    place, rest = before.split("/", 1)
    assert not has_ended(before, "pod-0"), "another process of the same container"
    elsewhere = f"{place[:-1]}{(int(place[-1]) + 1) % 10}/{rest}"
    assert has_ended(elsewhere, "pod-0")
    for unlike in (elsewhere.replace("pod-0", "pod-1"), elsewhere.replace("pod-0", "pod-01"), name_worker()):
        assert not has_ended(unlike, "pod-0")
    assert not has_ended(elsewhere)
    monkeypatch.setattr("socket.gethostname", lambda: "pod-0")
    assert not has_ended(f"pod-0:boot:1/{rest}", "pod-0"), "a machine of that name"


def test_what_cannot_be_seen_counts_as_running(monkeypatch: pytest.MonkeyPatch) -> None:
    place, pid, began, token = name_worker().split("/")

    def forbid(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbid)
    monkeypatch.setattr("trellis.webhooks.holder._find_start", lambda _: None)
    assert not has_ended(f"{place}/{pid}/{int(began) - 1}/{token}")
