"""The event log: one event for each successful write, none for anything else, numbered without gaps."""

from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.events.event import changed_members
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

WRITES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("groups.create", None, {"name": "Editors"}),
    ("groups.update", "patrons", {"prefix": "<b>"}),
    ("groups.delete", "patrons", {}),
    ("forums.create", None, {"name": "Polls"}),
    ("forums.update", "help", {"name": "Questions"}),
    ("forums.delete", "news", {"deleteChildrenOrMove": -1}),
    ("calendars.create", None, {"name": "Deadlines"}),
    ("calendars.update", "meetups", {"color": "#000000"}),
    ("calendars.delete", "meetups", {}),
    ("categories.create", None, {"name": "Fonts"}),
    ("categories.update", "tools", {"comments": False}),
    ("categories.delete", "tools", {}),
    ("blogs.create", None, {"name": "Diary"}),
    ("blogs.update", "notebook", {"pinned": True}),
    ("blogs.delete", "notebook", {}),
]


@pytest.mark.parametrize(("operation", "who", "raw"), WRITES, ids=[operation for operation, *_ in WRITES])
def test_a_write_leaves_one_event_and_its_dry_run_none(
    gate: Gate, community: Community, events: Events, operation: str, who: str | None, raw: dict[str, Any]
) -> None:
    target, known = getattr(community, who) if who else None, len(events())
    dry = gate.run(Call(operation, TERMINAL, {**raw, "dryRun": True}, target))
    assert (dry.event, dry.dry) == (None, True)
    assert len(events()) == known
    answer = gate.run(Call(operation, TERMINAL, raw, target))
    (event,) = events()[known:]
    assert (event["seq"], event["operation"]) == (answer.event, operation)
    assert (event["before"] is None) == operation.endswith("create")
    assert (event["after"] is None) == operation.endswith("delete")
    assert bool(event["changed"]) == operation.endswith("update")


def test_an_event_says_who_when_why_and_in_which_request(gate: Gate, events: Events, clock: Clock) -> None:
    actor = Actor("key", 7, "Plugin", frozenset({"forums.create"}))
    gate.run(Call("forums.create", actor, {"name": "News"}, request_id="r-1", reason="A new section, as agreed."))
    (event,) = events()
    assert event["actor"] == {"type": "key", "id": 7, "name": "Plugin"}
    assert (event["requestId"], event["reason"], event["at"]) == ("r-1", "A new section, as agreed.", clock.text)


def test_the_terminal_signs_for_itself(run: Run, events: Events) -> None:
    run("forums.create", name="News")
    (event,) = events()
    assert event["actor"] == {"type": "terminal", "id": None, "name": "terminal"}
    assert (event["requestId"], event["reason"]) == (None, None)


def test_events_are_numbered_without_gaps_through_refusals_dry_runs_and_no_changes(run: Run, events: Events) -> None:
    forum = run("forums.create", name="News")["id"]
    for attempt in range(3):
        with pytest.raises(Refused):
            run("forums.update", forum, parentId=forum)
        run("forums.update", forum, name="Dry", dryRun=True)
        run("forums.update", forum, name="News" if attempt == 0 else f"News {attempt}")
    assert [event["seq"] for event in events()] == [1, 2, 3]
    assert [event["operation"] for event in events()] == ["forums.create", "forums.update", "forums.update"]


def test_before_and_after_meet_from_event_to_event(run: Run, events: Events, clock: Clock) -> None:
    forum = run("forums.create", name="News")["id"]
    clock.move(seconds=1)
    run("forums.update", forum, name="Bulletin")
    clock.move(seconds=1)
    run("forums.delete", forum)
    created, updated, deleted = events()
    assert updated["before"] == created["after"]
    assert deleted["before"] == updated["after"]


@pytest.mark.parametrize(
    ("filters", "seqs"),
    [
        ({}, [1, 2, 3, 4]),
        ({"order": "newest"}, [4, 3, 2, 1]),
        ({"limit": 2}, [1, 2]),
        ({"limit": 2, "order": "newest"}, [4, 3]),
        ({"after": 2}, [3, 4]),
        ({"after": 3, "order": "newest"}, [2, 1]),
        ({"after": 4}, []),
        ({"operation": "forums.create"}, [1, 2]),
        ({"resource": "calendars"}, [3]),
        ({"resource": "forums", "resourceId": 2}, [2, 4]),
        ({"resource": "forums", "after": 1, "limit": 1}, [2]),
    ],
)
def test_events_are_read_in_pages_and_by_what_they_are_about(run: Run, filters: dict[str, Any], seqs: list[int]) -> None:
    for operation in ("forums.create", "forums.create", "calendars.create"):
        run(operation, name="X")
    run("forums.update", 2, name="Y")
    assert [event["seq"] for event in run("events.list", **filters)["results"]] == seqs


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1001}, {"after": -1}, {"order": "up"}, {"resourceId": 0}, {"seq": 1}])
def test_a_filter_that_makes_no_sense_is_refused(run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        run("events.list", **wrong)


def test_what_differs_is_named_but_not_the_time_of_change() -> None:
    before, after = {"a": 1, "b": [1], "updatedAt": "x"}, {"a": 1, "b": [2], "c": None, "d": 0, "updatedAt": "y"}
    assert changed_members(before, after) == ("b", "d")
