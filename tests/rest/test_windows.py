"""Counting in fixed windows."""

import pytest

from tests.rest.conftest import StoppedTime
from trellis.http.api import windows
from trellis.http.api.windows import RateWindows


def test_a_window_counts_until_its_end_and_begins_anew(stopped_time: StoppedTime) -> None:
    counted = RateWindows()
    assert [counted.count("a", 60) for _ in range(3)] == [(1, 60), (2, 60), (3, 60)]
    assert counted.count("b", 60) == (1, 60)
    stopped_time.now += 59.5
    assert counted.count("a", 60) == (4, 0.5)
    stopped_time.now += 0.5
    assert counted.count("a", 60) == (1, 60)


@pytest.mark.parametrize("hours", [-2, 2])
def test_setting_the_clock_neither_prolongs_nor_ends_a_window(stopped_time: StoppedTime, hours: float) -> None:
    counted = RateWindows()
    counted.count("a", 60)
    stopped_time.set_by = hours * 3600
    assert counted.count("a", 60) == (2, 60)
    stopped_time.now += 60
    assert counted.count("a", 60) == (1, 60)


def test_there_are_never_more_windows_than_the_most_and_the_oldest_go_first(stopped_time: StoppedTime) -> None:
    counted = RateWindows(100)
    for number in range(100_000):
        counted.count(f"2001:db8:0:{number:x}::/64", 60)
    assert len(counted._open) == 100  # nothing else tells of memory
    assert counted.count(f"2001:db8:0:{99_999:x}::/64", 60)[0] == 2
    assert counted.count("2001:db8:0:0::/64", 60)[0] == 1
    stopped_time.now += 61
    counted.count(f"2001:db8:0:{99_999:x}::/64", 60)
    counted.count("new", 60)
    assert counted.count(f"2001:db8:0:{99_999:x}::/64", 60)[0] == 2, "a window that has begun anew is not the oldest"


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
    assert {counted.count(f"new {number}", 60)[0] for number in range(40)} == {2}
    assert len(counted._open) == 40  # nothing else tells of memory
