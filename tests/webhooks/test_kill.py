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

from tests.cast import Events, Run
from tests.receiver import Receiver
from trellis.settings import Settings

KILLS: Final = int(os.environ.get("TRELLIS_TEST_KILLS", "6"))
RATE: Final = 20  # changes a second
VICTIM: Final = Path(__file__).with_name("victim.py")


def start(settings: Settings, rate: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(VICTIM), settings.database_url, str(rate)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * KILLS)
def test_nothing_is_lost_and_the_order_is_kept(settings: Settings, receiver: Receiver, run: Run, events: Events) -> None:
    secret = run("webhooks.create", url=receiver.url, events=["*"])["secret"]
    acknowledged: set[int] = set()
    for _ in range(KILLS):
        victim = start(settings, RATE)
        time.sleep(random.uniform(0.8, 4))  # noqa: S311  # when is nobody's secret
        victim.kill()
        told, failed = victim.communicate()
        assert "Traceback" not in failed
        acknowledged |= {int(line) for line in told.splitlines(keepends=True) if line.endswith("\n")}
    last = start(settings, 0)
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
