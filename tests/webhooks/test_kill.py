"""SIGKILL at a random moment, again and again, while changes are made and delivered: none is lost, and all come in order.

TRELLIS_TEST_KILLS says how often the process is killed; the suite does it a few times, a release 100 times.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.fixture_types import Run
from tests.webhook_receiver import Receiver
from trellis.settings import Settings

KILLS: Final = int(os.environ.get("TRELLIS_TEST_KILLS", "6"))
RATE: Final = 20  # changes a second
PROGRAM: Final = Path(__file__).with_name("delivering_process.py")


def start(settings: Settings, rate: float, told: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), settings.database_url, str(rate)]
    with told.open("w") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)


def wait_for_the_first_change(process: subprocess.Popen[str], told: Path) -> None:
    """Wait until the process is at work, however busy the machine is."""
    deadline = time.monotonic() + 30
    while process.poll() is None and not told.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(60 + 35 * KILLS)
def test_nothing_is_lost_and_the_order_is_kept(settings: Settings, receiver: Receiver, run: Run, tmp_path: Path) -> None:
    secret = run("webhooks.create", url=receiver.url, events=["*"])["secret"]
    acknowledged: set[int] = set()
    told = tmp_path / "told"
    for _ in range(KILLS):
        process = start(settings, RATE, told)
        wait_for_the_first_change(process, told)
        time.sleep(random.uniform(0, 3))  # noqa: S311  # when is nobody's secret
        process.kill()
        _, failed = process.communicate()
        assert "Traceback" not in failed
        acknowledged |= {int(line) for line in told.read_text().splitlines(keepends=True) if line.endswith("\n")}
    assert len(acknowledged) >= KILLS
    last = start(settings, 0, told)
    changes = len(run_all(run))
    deadline = time.monotonic() + 30
    while len(receiver.distinct) < changes and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    last.kill()
    last.communicate()

    seqs = [json.loads(one.body)["data"]["seq"] for one in receiver.received]
    first = list(dict.fromkeys(seqs))
    made = [event["seq"] for event in run_all(run)]
    assert acknowledged <= set(made)
    assert first == made, "every change is told, in order"
    assert len(receiver.distinct) == len(made)
    assert len(dict(zip(seqs, receiver.ids, strict=True)).values()) == len(set(receiver.ids)), "one id for each change"
    assert receiver.most_at_once == 1
    for one in receiver.received[-20:]:
        one.verified(secret)


def run_all(run: Run) -> list[dict[str, int]]:
    """Give the events of forums, however many."""
    found: list[dict[str, int]] = []
    while page := run("events.list", limit=1000, resource="forums", after=found[-1]["seq"] if found else 0)["results"]:
        found += page
    return found
