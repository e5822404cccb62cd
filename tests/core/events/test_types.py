"""The feed and the log by the types of events: exactly those whose type is one of the wanted ones, whatever the page."""

from difflib import get_close_matches
from itertools import combinations, product
from typing import Any

import pytest

from tests.community import CATALOGUE, Community
from tests.fixture_types import Events, Run
from trellis.core.events import list_types
from trellis.core.fields import suggestions
from trellis.errors import Refused


@pytest.fixture
def log(run: Run, community: Community, events: Events) -> list[dict[str, Any]]:
    """All events of a community in which nearly everything has happened."""
    news, help_ = community.news, community.help
    run("forums.update", news, position=2)
    run("forums.update", community.interviews, parentId=help_)
    run("forums.update", help_, name="Questions", position=0)
    run("forums.update", help_, name="Answers")
    run("forums.update", help_, password="open sesame")
    run("calendars.order", ids=[community.holidays, community.meetups])
    run("categories.copy", community.tools, name="More tools")
    run("groups.update", community.patrons, prefix="<b>")
    run("blogs.delete", community.notebook)
    run("events.restore", events()[-1]["seq"])
    run("keys.create", name="Key", grants=["forums.list"])
    run("keys.update", 1, name="Other key")
    run("keys.revoke", 1)
    run("webhooks.create", url="https://hooks.example/in", events=["*"])
    return events()


def seqs(page: dict[str, Any]) -> list[int]:
    return [event["seq"] for event in page["results"]]


@pytest.mark.slow
def test_each_type_finds_its_events_and_no_other(run: Run, log: list[dict[str, Any]]) -> None:
    happened = {event["type"] for event in log}
    assert {"forum.moved", "forum.updated", "calendar.moved", "category.copied", "blog.restored", "key.revoked"} <= happened
    for wanted in sorted(happened):
        expected = [event["seq"] for event in log if event["type"] == wanted]
        assert seqs(run("events.list", type=wanted, limit=1000)) == expected, wanted
        assert seqs(run("events.search", type=wanted, limit=500)) == expected[::-1], wanted
    others = sorted(set(list_types(CATALOGUE.values())) - happened)
    assert seqs(run("events.list", type=others, limit=1000)) == seqs(run("events.search", type=others, limit=500)) == []


def test_what_is_only_planned_has_no_type(run: Run) -> None:
    assert [name for name in list_types(CATALOGUE.values()) if name.startswith("structure.")] == ["structure.applied"]
    with pytest.raises(Refused, match="no events of the type"):
        run("events.list", type="structure.planed")


def test_several_types_find_the_events_of_all(run: Run, log: list[dict[str, Any]]) -> None:
    for pair in combinations(("forum.moved", "forum.updated", "forum.created", "calendar.moved", "group.updated"), 2):
        expected = [event["seq"] for event in log if event["type"] in pair]
        assert seqs(run("events.list", type=",".join(pair), limit=1000)) == expected
        assert seqs(run("events.list", type=list(pair), limit=1000, order="newest")) == expected[::-1]


def test_pages_follow_each_other_by_the_cursor(run: Run, log: list[dict[str, Any]]) -> None:
    expected = [event["seq"] for event in log if event["type"] in {"forum.moved", "forum.updated"}]
    for limit, order in product((1, 2, 3), ("oldest", "newest")):
        wanted = {"type": "forum.moved,forum.updated", "order": order, "limit": limit}
        page = run("events.list", **wanted)
        found = seqs(page)
        while page["more"]:
            page = run("events.list", **wanted, after=page["next"])
            found += seqs(page)
        assert found == (expected if order == "oldest" else expected[::-1]), limit
        assert page["next"] == (log[-1]["seq"] if order == "oldest" else None)


def test_a_type_is_joined_with_other_filters(run: Run, community: Community, log: list[dict[str, Any]]) -> None:
    about = {"resource": "forums", "resourceId": community.help}
    expected = [event["seq"] for event in log if event["type"] == "forum.updated" and event["resourceId"] == community.help]
    assert seqs(run("events.list", type="forum.updated", **about)) == expected
    assert len(expected) == 3
    assert run("events.list", type="forum.updated", operation="forums.create")["results"] == []


@pytest.mark.parametrize("operation", ["events.list", "events.search"])
def test_a_type_that_there_is_not_is_refused(run: Run, operation: str) -> None:
    for wrong in ("forum.move", "forums.moved", "forum", "key.moved", ["forum.moved", "x"], "'; --"):
        with pytest.raises(Refused) as refused:
            run(operation, type=wrong)
        assert [(fault.field, fault.message) for fault in refused.value.faults] == [("type", "INVALID_VALUE")], wrong


def test_the_nearest_type_is_suggested(run: Run) -> None:
    with pytest.raises(Refused, match=r"no events of the type 'forums\.moved'\. Did you mean forum\.moved\?"):
        run("events.list", type="forums.moved")


@pytest.mark.parametrize("operation", ["events.list", "events.search"])
@pytest.mark.parametrize(
    ("field", "wrong", "hint"),
    [
        ("resource", "forum", "Did you mean forums?"),
        ("resource", "forums,calendars", ""),
        ("resource", "members", ""),
        ("operation", "forums.created", "Did you mean forums.create?"),
        ("operation", "forums.list", ""),  # it reads: no event is ever of it
    ],
)
def test_an_operation_and_a_resource_that_no_event_has_are_refused(
    run: Run, operation: str, field: str, wrong: str, hint: str
) -> None:
    with pytest.raises(Refused) as refused:
        run(operation, **{field: wrong})
    (fault,) = refused.value.faults
    assert (fault.field, fault.message) == (field, "INVALID_VALUE")
    assert f"no events of the {field} '{wrong}'" in fault.detail
    assert hint in fault.detail


def test_all_names_that_no_event_has_are_told_at_once(run: Run) -> None:
    with pytest.raises(Refused) as refused:
        run("events.list", type="forum.gone", operation="forums.vanish", resource="forum")
    assert [fault.field for fault in refused.value.faults] == ["type", "operation", "resource"]


@pytest.mark.parametrize("operation", ["events.list", "events.search"])
def test_many_types_that_there_are_not_are_compared_no_more_than_one(
    run: Run, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparing all of them would hold up everything else for a sixth of a second."""
    compared: list[str] = []

    def compare(name: str, known: Any, most: int) -> list[str]:
        compared.append(name)
        return get_close_matches(name, known, most)

    monkeypatch.setattr(suggestions, "get_close_matches", compare)
    with pytest.raises(Refused, match=r"Did you mean forum\.created"):
        run(operation, type=[f"forum.crea{number}" for number in range(200)])
    assert compared == ["forum.crea0"]


def test_an_operation_and_a_resource_find_their_events(run: Run, log: list[dict[str, Any]]) -> None:
    for field in ("operation", "resource"):
        for name in {event[field] for event in log}:
            expected = [event["seq"] for event in log if event[field] == name]
            assert seqs(run("events.list", limit=1000, **{field: name})) == expected
            assert seqs(run("events.search", limit=500, **{field: name})) == expected[::-1]
    assert seqs(run("events.search", limit=500, operation="", resource="")) == [event["seq"] for event in log][::-1]


@pytest.mark.parametrize("empty", ["", ",", []])
def test_no_type_at_all_is_refused(run: Run, empty: Any) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE: type must be one or more types"):
        run("events.list", type=empty)


def test_every_type_of_the_log_has_a_name_of_its_own() -> None:
    found = list_types(CATALOGUE.values())
    assert len(set(found.values())) == len(found)
