"""Creating nodes: what is made, what is refused, and that a dry run leaves nothing behind."""

from typing import Any

import pytest

from tests.community import COMMUNITY_URL, Community
from tests.fixture_types import Clock, Events, Run
from trellis.errors import Refused


def test_a_node_is_made_with_what_was_given_and_defaults_for_the_rest(run: Run, clock: Clock) -> None:
    made = run("forums.create", name=" News ", description="<p>What is new.</p>", minContent="3", permissions={"view": "*"})
    assert made == {
        "id": 1,
        "name": "News",
        "url": f"{COMMUNITY_URL}/forums/1-news/",
        "externalId": None,
        "managedBy": None,
        "parentId": None,
        "position": 0,
        "path": "News",
        "description": "<p>What is new.</p>",
        "type": "discussions",
        "theme": None,
        "sitemapPriority": None,
        "minContent": 3,
        "canSeeOthers": True,
        "redirectUrl": None,
        "passwordProtected": False,
        "permissions": {"view": "*", "read": [], "add": [], "reply": [], "attachments": []},
        "createdAt": clock.text,
        "updatedAt": clock.text,
    }
    assert run("forums.get", 1) == made


def test_a_calendar_has_its_own_members(run: Run) -> None:
    made = run("calendars.create", title="Meetups", color="#aabbcc", approve_events=1)
    assert (made["name"], made["color"], made["approveEvents"]) == ("Meetups", "#AABBCC", True)
    assert "path" not in made
    assert "parentId" not in made


def test_a_creation_leaves_one_event_with_the_record(run: Run, events: Events, clock: Clock) -> None:
    made = run("categories.create", name="Skins")
    (event,) = events()
    assert event["operation"] == "categories.create"
    assert (event["resource"], event["resourceId"], event["at"]) == ("categories", made["id"], clock.text)
    assert (event["before"], event["after"]) == (None, made)
    assert (event["changed"], event["touched"]) == ([], [])


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("groups", "1C358/4"),
        ("forums", "1F363/2"),
        ("blogs", "1B366/2"),
        ("calendars", "1L364/2"),
        ("categories", "1D365/2"),
    ],
)
def test_a_name_is_needed(run: Run, kind: str, code: str, events: Events) -> None:
    sent: tuple[dict[str, str | None], ...] = ({}, {"name": ""}, {"name": None}, {"title": "  "})
    for body in sent:
        with pytest.raises(Refused) as refused:
            run(f"{kind}.create", **body)
        assert (refused.value.message, refused.value.code) == ("NO_TITLE", code), body
        assert [(fault.field, fault.code) for fault in refused.value.faults] == [("name", code)], body
    assert events() == []


@pytest.mark.parametrize("name", ["x" * 256, "a\x00b", "a\nb", "\ud800", 7, ["News"]])
def test_a_name_that_is_not_allowed_is_refused(run: Run, name: object) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE: name "):
        run("forums.create", name=name)


@pytest.mark.parametrize("name", ["x" * 255, "Ärger & <b>Freude</b>", "新聞", "🦎", "'; DROP TABLE nodes; --", "%_\\"])
def test_any_other_name_is_kept_as_it_is(run: Run, name: str) -> None:
    made = run("forums.create", name=name)
    assert made["name"] == run("forums.get", made["id"])["name"] == name


def test_every_field_at_fault_is_told(run: Run) -> None:
    wrong: dict[str, Any] = {
        "type": "club",
        "minContent": -1,
        "parentId": 999,
        "permissions": {"view": [77]},
        "copyPermissionsFrom": 998,
        "colour": "red",
    }
    with pytest.raises(Refused) as refused:
        run("forums.create", **wrong)
    told = [(fault.field, fault.message) for fault in refused.value.faults]
    assert told[0] == ("name", "NO_TITLE")
    assert set(told) == {
        ("name", "NO_TITLE"),
        ("type", "INVALID_TYPE"),
        ("minContent", "INVALID_VALUE"),
        ("parentId", "INVALID_PARENT"),
        ("permissions.view", "INVALID_GROUP"),
        ("copyPermissionsFrom", "INVALID_VALUE"),
        ("colour", "UNKNOWN_PARAMETER"),
    }
    assert refused.value.message == "NO_TITLE"


def test_a_parameter_of_another_kind_is_unknown(run: Run) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_PARAMETER: There is no parameter 'color'\."):
        run("forums.create", name="News", color="#000000")


def test_read_only_members_are_passed_over(run: Run) -> None:
    made = run(
        "forums.create",
        id=77,
        name="News",
        url="https://evil.example/",
        path="A > B",
        createdAt="1999-01-01",
        passwordProtected=True,
    )
    assert (made["id"], made["path"], made["passwordProtected"]) == (1, "News", False)
    assert made["url"].startswith(COMMUNITY_URL)
    assert made["createdAt"] > "2026"


def test_ids_count_from_one_in_each_kind(run: Run) -> None:
    assert [run(f"{kind}.create", name="First")["id"] for kind in ("forums", "calendars", "categories", "blogs")] == [
        1,
        1,
        1,
        1,
    ]
    assert run("forums.create", name="Second")["id"] == 2


def test_an_id_is_never_used_again(run: Run) -> None:
    first, last = run("forums.create", name="First")["id"], run("forums.create", name="Last")["id"]
    run("forums.delete", last)
    run("forums.delete", first)
    assert run("forums.create", name="Next")["id"] == 3


def test_a_refused_creation_uses_no_id(run: Run) -> None:
    with pytest.raises(Refused):
        run("forums.create", name="First", parentId=9)
    assert run("forums.create", name="First")["id"] == 1


def test_a_dry_run_answers_what_would_be_made_and_makes_nothing(run: Run, events: Events) -> None:
    made = run("forums.create", name="News", dryRun=1)
    assert (made["id"], made["name"], made["path"]) == (1, "News", "News")
    assert run("forums.list")["totalResults"] == 0
    assert events() == []
    assert run("forums.create", name="Olds")["id"] == 1


def test_a_dry_run_is_refused_where_the_real_one_would_be(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^INVALID_PARENT"):
        run("forums.create", name="Page", parentId=community.wiki, dryRun=True)


def test_a_dry_run_moves_no_siblings(run: Run, community: Community) -> None:
    assert run("forums.create", name="New", position=0, dryRun=True)["position"] == 0
    assert run("forums.get", community.news)["position"] == 0


def test_a_malformed_dry_run_is_refused_and_makes_nothing(run: Run, events: Events) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE: dryRun must be true or false"):
        run("forums.create", name="News", dryRun="maybe")
    assert events() == []
