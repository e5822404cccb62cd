"""`trellis demo`: the sample community."""

from typing import Any

import pytest

from tests.cli.conftest import Trellis, TrellisJson
from trellis.cli.demo.load import count_seeds, read_sample


@pytest.fixture
def loaded(trellis: Trellis) -> Trellis:
    """Return the command line over the sample community."""
    assert trellis("demo").exit_code == 0
    return trellis


def everything(run: TrellisJson, kind: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = run("run", f"{kind}.list", "perPage=1000")["results"]
    return results


def test_it_loads_what_it_promises(loaded: Trellis, trellis_json: TrellisJson) -> None:
    forums = everything(trellis_json, "forums")

    assert len(everything(trellis_json, "groups")) >= 5
    assert len(forums) >= 40
    assert max(forum["path"].count(" > ") + 1 for forum in forums) >= 4
    assert {forum["type"] for forum in forums} == {"discussions", "questions", "category", "redirect"}
    assert sum(forum["passwordProtected"] for forum in forums) == 1
    assert len({str(forum["permissions"]) for forum in forums}) >= 6
    assert len(everything(trellis_json, "calendars")) >= 6
    assert len(everything(trellis_json, "categories")) >= 20
    assert len(everything(trellis_json, "blogs")) >= 8
    assert trellis_json("check")["count"] == 0


def test_it_leaves_one_event_for_each_node(loaded: Trellis, trellis_json: TrellisJson) -> None:
    events = trellis_json("run", "events.list", "limit=1000")["results"]
    made = sum(map(count_seeds, read_sample().values()))

    assert len(events) == made
    assert {event["reason"] for event in events} == {"The sample community"}
    assert {event["actor"]["type"] for event in events} == {"terminal"}


def test_it_says_what_it_loaded(trellis: Trellis) -> None:
    assert trellis("demo").stdout == "Loaded 7 groups, 7 calendars, 26 download categories, 9 blogs, 55 forums.\n"


def test_it_finds_a_group_that_was_renamed(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "groups.update", "3", "name=Stargazers")

    assert trellis("demo").stdout == "Loaded 7 groups, 7 calendars, 26 download categories, 9 blogs, 55 forums.\n"
    assert 3 in everything(trellis_json, "forums")[0]["permissions"]["reply"]


def test_it_refuses_a_community_that_has_forums(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "forums.create", "name=News")

    result = trellis("demo")

    assert result.exit_code == 1
    assert result.stderr.startswith("The community already has forums.")
    assert len(everything(trellis_json, "groups")) == 3
    assert len(everything(trellis_json, "forums")) == 1


def test_a_loading_that_was_broken_off_is_taken_up_again(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "groups.create", "name=Moderators")
    trellis("run", "calendars.create", "name=My own")

    assert trellis("demo").exit_code == 0
    assert len(everything(trellis_json, "groups")) == 7
    assert len(everything(trellis_json, "calendars")) == 1
    assert len(everything(trellis_json, "forums")) >= 40


def test_blogs_that_are_missing_since_a_loading_was_broken_off_are_loaded(
    trellis: Trellis, trellis_json: TrellisJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        broken = {**read_sample(), "blogs": [*read_sample()["blogs"][:2], {"name": ""}]}
        patch.setattr("trellis.cli.demo.load.read_sample", lambda: broken)
        assert trellis("demo").exit_code == 1
    assert trellis("demo").exit_code == 0
    assert [blog["name"] for blog in everything(trellis_json, "blogs")] == [seed["name"] for seed in read_sample()["blogs"]]


def test_forums_are_loaded_all_or_none(trellis: Trellis, trellis_json: TrellisJson, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops it in the middle can start it again."""
    with monkeypatch.context() as patch:
        broken = {**read_sample(), "forums": [*read_sample()["forums"], {"name": ""}]}
        patch.setattr("trellis.cli.demo.load.read_sample", lambda: broken)
        assert trellis("demo").exit_code == 1
    assert everything(trellis_json, "forums") == []
    assert trellis("demo").exit_code == 0
    assert len(everything(trellis_json, "forums")) == 55
