"""Counting in fixed windows."""

import pytest

from tests.rest.conftest import StoppedTime
from trellis.rest import windows
from trellis.rest.windows import RateWindows


def test_a_window_counts_until_its_end_and_begins_anew(stopped_time: StoppedTime) -> None:
    counted = RateWindows()
    assert [counted.count("a", 60) for _ in range(3)] == [(1, 1060), (2, 1060), (3, 1060)]
    assert counted.count("b", 60) == (1, 1060)
    stopped_time.now += 59.9
    assert counted.seen("a") == (3, 1060)
    stopped_time.now += 0.1
    assert counted.seen("a") == (0, 1060)
    assert counted.count("a", 60) == (1, 1120)


def test_windows_that_are_over_are_thrown_out_and_open_ones_are_not(
    stopped_time: StoppedTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_MANY", 10)
    counted = RateWindows()
    for number in range(8):
        counted.count(f"old {number}", 60)
    stopped_time.now += 61
    for number in range(40):
        counted.count(f"new {number}", 60)
    assert {counted.seen(f"new {number}")[0] for number in range(40)} == {1}
    assert len(counted._open) == 40  # nothing else tells of memory
