"""Events of records with very long texts: a page of them ends early, and no more is read than what is on it."""

from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Run
from tests.memory_meter import MemoryMeter
from trellis.store.events import pages

LONGEST = "x" * 25_000
MOST = 2**18  # bytes


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", MOST)


@pytest.fixture
def last(run: Run, community: Community) -> int:
    """The last of 36 events with 25 KB of text before and after each."""
    run("forums.update", community.help, description=LONGEST)
    for number in range(36):
        run("forums.update", community.help, name=f"Help {number}")
    return int(run("events.list", order="newest", limit=1)["results"][0]["seq"])


def follow(run: Run, **asked: Any) -> list[list[int]]:
    """Read all pages, each with little memory; return the numbers of their events."""
    found: list[list[int]] = []
    more = True
    while more:
        with MemoryMeter() as meter:
            page = run("events.list", **asked)
        assert meter.peak < 6 * MOST
        found.append([one["seq"] for one in page["results"]])
        more, asked["after"] = page["more"], page["next"]
    return found


@pytest.mark.slow
def test_a_page_of_large_events_ends_early_and_none_is_left_out(run: Run, last: int) -> None:
    for filters in ({}, {"resource": "forums"}, {"type": "forum.updated"}, {"since": "2020-01-01"}):
        oldest = follow(run, limit=1000, **filters)
        newest = follow(run, limit=1000, order="newest", **filters)
        expected = [one for page in oldest for one in page]
        assert expected == sorted(set(expected)), filters
        assert expected[-36:] == list(range(last - 35, last + 1)), filters
        assert [one for page in newest for one in page] == expected[::-1], filters
        assert {len(page) for page in oldest[2:-1]} == {5}, filters
    assert max(map(len, follow(run, limit=3))) == 3


def test_a_page_has_one_event_however_large(run: Run, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", 1000)
    page = run("events.list", after=last - 2, limit=10)
    assert ([one["seq"] for one in page["results"]], page["next"], page["more"]) == ([last - 1], last - 1, True)
    page = run("events.list", after=last - 1, limit=10)
    assert ([one["seq"] for one in page["results"]], page["next"], page["more"]) == ([last], last, False)


@pytest.mark.slow
def test_so_does_a_search(run: Run, last: int) -> None:
    for filters in ({}, {"resource": "forums"}, {"operation": "forums.update"}, {"actorType": "terminal"}):
        found: list[int] = []
        asked: dict[str, Any] = {"limit": 500, **filters}
        while asked.get("before", 1) is not None:
            with MemoryMeter() as meter:
                page = run("events.search", **asked)
            assert meter.peak < 6 * MOST
            assert page["complete"]
            found += [one["seq"] for one in page["results"]]
            asked["before"] = page["next"]
        assert found[:36] == list(range(last, last - 36, -1)), filters
        assert found == sorted(set(found), reverse=True), filters
