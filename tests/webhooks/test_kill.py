"""SIGKILL at a random moment, again and again, while changes are made and delivered: none is lost, and all come in order.

TRELLIS_TEST_KILLS says how often the process is killed; the suite does it a few times, a release 100 times.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.fixture_types import Run
from tests.forked import ForkedProcess
from tests.wait import GIVE_UP, wait_until
from tests.webhook_receiver import Receiver
from tests.webhooks import delivering_process
from trellis.settings import Settings

KILLS: Final = int(os.environ.get("TRELLIS_TEST_KILLS", "3"))
RATE: Final = 20  # changes a second


@contextmanager
def delivering(settings: Settings, rate: float, told: Path) -> Iterator[ForkedProcess]:
    """Start a process that makes changes and delivers them; its output goes to a file. It is killed at the end."""
    told.write_bytes(b"")
    process = ForkedProcess([settings.database_url, str(rate)], told.parent, os.environ, told, delivering_process.main)
    try:
        yield process
    finally:
        process.kill()
        process.wait(GIVE_UP)


@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * KILLS)
def test_nothing_is_lost_and_the_order_is_kept(settings: Settings, receiver: Receiver, run: Run, tmp_path: Path) -> None:
    secret = run("webhooks.create", url=receiver.url, events=["*"])["secret"]
    acknowledged: set[int] = set()
    told = tmp_path / "told"
    for _ in range(KILLS):
        with delivering(settings, RATE, told) as process:
            wait_until(lambda process=process: process.poll() is not None or told.read_text())  # type: ignore[misc]
            time.sleep(random.uniform(0, 1.5))  # noqa: S311  # three looks for what is due; when is nobody's secret
        output = told.read_text()
        assert "Traceback" not in output
        acknowledged |= {int(line) for line in output.splitlines(keepends=True) if line.endswith("\n") and line.strip().isdecimal()}
    assert len(acknowledged) >= KILLS
    with delivering(settings, 0, told):
        changes = len(run_all(run))
        wait_until(lambda: len(receiver.distinct) >= changes)
        time.sleep(0.5)  # what would come twice comes now

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
    """Return the events of forums, however many."""
    found: list[dict[str, int]] = []
    while page := run("events.list", limit=1000, resource="forums", after=found[-1]["seq"] if found else 0)["results"]:
        found += page
    return found
