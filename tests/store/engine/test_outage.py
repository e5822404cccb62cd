"""An outage in the log: once, then a count a minute, then that it is over."""

import logging

import pytest

from trellis.store.engine import outage
from trellis.store.engine.outage import Outage


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock: its time is the last one."""
    times = [1000.0]
    monkeypatch.setattr(outage, "monotonic", lambda: times[-1])
    return times


def test_it_is_told_once_then_counted_each_minute_and_then_over(now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    one = Outage()
    for second in range(150):
        now.append(1000.0 + second)
        for _ in range(100):
            one.record_failure(OSError("no way\nto the server"))
    states = [one.is_on]
    one.record_success()
    states.append(one.is_on)
    now.append(1200.0)
    one.record_success()
    one.record_success()
    assert [*states, one.is_on] == [True, True, False], "a single success between failures does not end it"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "The database could not be used: no way to the server. Further failures are counted.",
        "The database still cannot be used: 6000 failures since the last line. no way to the server.",
        "The database still cannot be used: 6000 failures since the last line. no way to the server.",
        "The database can be used again, after 15000 failures.",
    ]


def test_the_next_one_is_told_anew(now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    one = Outage()
    for at in (1000.0, 2000.0):
        now.append(at)
        one.record_failure(OSError("gone"))
        now.append(at + 10)
        one.record_success()
    assert [record.getMessage().split(":")[0].split(",")[0] for record in caplog.records] == [
        "The database could not be used",
        "The database can be used again",
    ] * 2
