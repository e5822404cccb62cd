"""The one time zone of a page: what the server writes in it and what it reads, at half hours and where the clocks change."""

from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from trellis.admin.submitted import Submitted
from trellis.admin.times import Clock, find_clock
from trellis.core.fields import find_midnights, find_zone, list_zones

BERLIN = Clock("Europe/Berlin", "Europe/Berlin")


@pytest.mark.parametrize(
    ("zone", "moment", "shown"),
    [
        ("UTC", "2026-01-31T09:30:00.000Z", "31 Jan 2026, 09:30 UTC"),
        ("Asia/Kolkata", "2026-01-31T19:00:00.000Z", "1 Feb 2026, 00:30 UTC+5:30"),
        ("Asia/Kathmandu", "2026-01-31T09:30:00.000Z", "31 Jan 2026, 15:15 UTC+5:45"),
        ("America/St_Johns", "2026-01-31T01:00:00.000Z", "30 Jan 2026, 21:30 UTC-3:30"),
        ("Europe/Berlin", "2026-10-25T00:30:00.000Z", "25 Oct 2026, 02:30 UTC+2"),
        ("Europe/Berlin", "2026-10-25T01:30:00.000Z", "25 Oct 2026, 02:30 UTC+1"),
    ],
)
def test_a_time_is_shown_with_its_distance_from_utc(zone: str, moment: str, shown: str) -> None:
    assert Clock(zone).full(moment) == shown


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("2026-07-01T00:00", "2026-06-30T22:00:00.000Z"),
        ("2026-01-01T00:00", "2025-12-31T23:00:00.000Z"),
        ("2026-03-29T02:30", "2026-03-29T01:30:00.000Z"),  # skipped
        ("2026-10-25T02:30", "2026-10-25T00:30:00.000Z"),  # there twice: the first
        ("2026-10-25T02:30Z", "2026-10-25T02:30:00.000Z"),
        ("yesterday", "yesterday"),
        ("0001-01-01T00:00", "0001-01-01T00:00"),
    ],
)
def test_a_time_that_is_typed_is_read_in_the_zone(typed: str, read: str) -> None:
    assert BERLIN.read_typed(typed) == read


def test_the_second_of_two_hours_survives_a_form() -> None:
    second = "2026-10-25T01:30:00.000Z"
    assert BERLIN.is_twice(second)
    assert BERLIN.read_typed(BERLIN.show_typed(second), second) == second
    assert BERLIN.read_typed("2026-10-25T03:30", second) == "2026-10-25T02:30:00.000Z"  # typed over
    assert not BERLIN.is_twice("2026-10-25T00:30:00.000Z")


def test_a_filter_means_the_moment_in_whatever_zone_it_is_read() -> None:
    sent = {"from": "2026-07-01T00:00", "_zone": "Asia/Kolkata", "path": "x"}
    for clock in (BERLIN, Clock()):
        assert dict(Submitted.filters(sent, clock)) == {"from": "2026-06-30T18:30:00.000Z", "path": "x"}
    assert dict(Submitted.filters({**sent, "_zone": "../etc"}, BERLIN)) == {"from": "2026-06-30T22:00:00.000Z", "path": "x"}


@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("Europe/Berlin", "2026-03-29T12:00:00.000Z", [24, 23]),
        ("Europe/Berlin", "2026-10-25T12:00:00.000Z", [24, 25]),
        ("Africa/Cairo", "2026-04-24T12:00:00.000Z", [24, 23]),  # where midnight itself is skipped
        ("Asia/Kolkata", "2026-01-31T19:00:00.000Z", [24, 24]),
    ],
)
def test_days_begin_at_their_midnight_and_are_as_long_as_they_are(zone: str, now: str, hours: list[int]) -> None:
    begins = find_midnights(now, ZoneInfo(zone), 2)
    assert [(end - begin).total_seconds() / 3600 for begin, end in pairwise(begins)] == hours
    assert begins[-2].isoformat() <= now.replace("Z", "+00:00") < begins[-1].isoformat()


def test_whose_zone_it_is() -> None:
    assert find_clock("", "", shows_utc=False).name == "UTC"
    assert find_clock("", "Asia/Kolkata", shows_utc=False).name == "Asia/Kolkata"
    assert find_clock("Europe/Berlin", "Asia/Kolkata", shows_utc=False).name == "Europe/Berlin"
    switched = find_clock("Europe/Berlin", "", shows_utc=True)
    assert (switched.name, switched.home) == ("UTC", "Europe/Berlin")
    for hostile in ("../../etc/passwd", "/etc/passwd", "x" * 10_000, "Europe", ""):
        assert find_zone(hostile) is None
    assert all(find_zone(name) is not None for name in list_zones())
