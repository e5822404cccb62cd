"""Where a node stands: last, at a position, before or after a sibling, under another parent, and where it cannot."""

from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Events, Run
from trellis.errors import Refused


def names(run: Run, parent: int | str = "root", kind: str = "forums") -> list[str]:
    """The children of a node in their order; their positions must be 0…n-1."""
    found = run(f"{kind}.list", parentId=parent, sortBy="position")["results"]
    assert [node["position"] for node in found] == list(range(len(found)))
    return [node["name"] for node in found]


def calendars(run: Run) -> list[str]:
    found = run("calendars.list", sortBy="position")["results"]
    assert [node["position"] for node in found] == list(range(len(found)))
    return [node["name"] for node in found]


def test_a_new_node_stands_last(run: Run, community: Community) -> None:
    assert run("forums.create", name="Polls")["position"] == 4
    assert run("forums.create", name="Polls", parentId=community.news)["position"] == 2
    assert names(run) == ["News", "Help", "Wiki", "Staff", "Polls"]


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ({"position": 0}, ["New", "News", "Help", "Wiki", "Staff"]),
        ({"position": 2}, ["News", "Help", "New", "Wiki", "Staff"]),
        ({"position": 4}, ["News", "Help", "Wiki", "Staff", "New"]),
        ({"position": 900}, ["News", "Help", "Wiki", "Staff", "New"]),
        ({"before": "news"}, ["New", "News", "Help", "Wiki", "Staff"]),
        ({"before": "staff"}, ["News", "Help", "Wiki", "New", "Staff"]),
        ({"after": "news"}, ["News", "New", "Help", "Wiki", "Staff"]),
        ({"after": "staff"}, ["News", "Help", "Wiki", "Staff", "New"]),
    ],
)
def test_a_new_node_stands_where_it_is_wanted(run: Run, community: Community, place: dict[str, Any], order: list[str]) -> None:
    wish = {name: getattr(community, where) if isinstance(where, str) else where for name, where in place.items()}
    made = run("forums.create", name="New", **wish)
    assert names(run) == order
    assert made["position"] == order.index("New")


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ({"position": 0}, ["Help", "News", "Wiki", "Staff"]),
        ({"position": 1}, ["News", "Help", "Wiki", "Staff"]),
        ({"position": 2}, ["News", "Wiki", "Help", "Staff"]),
        ({"position": 3}, ["News", "Wiki", "Staff", "Help"]),
        ({"position": 4}, ["News", "Wiki", "Staff", "Help"]),
        ({"before": "news"}, ["Help", "News", "Wiki", "Staff"]),
        ({"after": "news"}, ["News", "Help", "Wiki", "Staff"]),
        ({"before": "wiki"}, ["News", "Help", "Wiki", "Staff"]),
        ({"after": "wiki"}, ["News", "Wiki", "Help", "Staff"]),
        ({"before": "staff"}, ["News", "Wiki", "Help", "Staff"]),
        ({"after": "staff"}, ["News", "Wiki", "Staff", "Help"]),
        ({"parentId": None, "after": "staff"}, ["News", "Wiki", "Staff", "Help"]),
    ],
)
def test_a_node_moves_among_its_siblings(run: Run, community: Community, place: dict[str, Any], order: list[str]) -> None:
    wish = {name: getattr(community, where) if isinstance(where, str) else where for name, where in place.items()}
    moved = run("forums.update", community.help, **wish)
    assert names(run) == order
    assert moved["position"] == order.index("Help")
    assert moved["name"] == "Help"


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ({}, ["Releases", "Interviews", "Help"]),
        ({"position": 0}, ["Help", "Releases", "Interviews"]),
        ({"position": 1}, ["Releases", "Help", "Interviews"]),
        ({"before": "interviews"}, ["Releases", "Help", "Interviews"]),
        ({"after": "releases"}, ["Releases", "Help", "Interviews"]),
        ({"after": "interviews"}, ["Releases", "Interviews", "Help"]),
    ],
)
def test_a_node_moves_under_another_parent(run: Run, community: Community, place: dict[str, Any], order: list[str]) -> None:
    wish = {name: getattr(community, where) if isinstance(where, str) else where for name, where in place.items()}
    moved = run("forums.update", community.help, parentId=community.news, **wish)
    assert names(run, community.news) == order
    assert names(run) == ["News", "Wiki", "Staff"]
    assert (moved["parentId"], moved["path"]) == (community.news, "News > Help")


@pytest.mark.parametrize("root", [None, "", 0, -1, "0", "-1"])
def test_a_node_moves_to_the_top_level_however_that_is_written(run: Run, community: Community, root: object) -> None:
    moved = run("forums.update", community.betas, parentId=root)
    assert (moved["parentId"], moved["position"], moved["path"]) == (None, 4, "Betas")
    assert names(run, community.releases) == []


def test_a_subtree_comes_along(run: Run, community: Community) -> None:
    run("forums.update", community.releases, parentId=community.staff)
    assert run("forums.get", community.betas)["path"] == "Staff > Releases > Betas"
    assert names(run, community.news) == ["Interviews"]


def test_a_move_and_other_changes_are_one_event(run: Run, community: Community, events: Events) -> None:
    before = len(events())
    run("forums.update", community.help, parentId=community.news, name="Questions", position=0)
    (event,) = events()[before:]
    assert set(event["changed"]) == {"name", "url", "parentId", "position", "path"}


def test_the_parent_it_has_already_keeps_its_place(run: Run, community: Community, events: Events) -> None:
    before = len(events())
    assert run("forums.update", community.releases, parentId=community.news)["position"] == 0
    assert len(events()) == before


def test_a_shift_among_siblings_is_no_change_of_theirs(run: Run, community: Community, events: Events) -> None:
    old = {id: run("forums.get", id)["updatedAt"] for id in (community.news, community.wiki)}
    run("forums.update", community.help, position=0)
    assert {id: run("forums.get", id)["updatedAt"] for id in old} == old
    assert events()[-1]["touched"] == []


@pytest.mark.parametrize("of", ["releases", "betas"])
def test_a_node_cannot_stand_below_itself(run: Run, community: Community, of: str, events: Events) -> None:
    before = len(events())
    with pytest.raises(
        Refused, match=r"^INVALID_PARENT: parentId: a forum cannot be moved under [0-9]+, which is below it"
    ) as refused:
        run("forums.update", community.news, parentId=getattr(community, of))
    assert [fault.field for fault in refused.value.faults] == ["parentId"]
    assert len(events()) == before


def test_a_node_cannot_stand_under_itself(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^INVALID_PARENT: parentId: a forum cannot be moved under itself"):
        run("forums.update", community.news, parentId=community.news)


@pytest.mark.parametrize("parent", [999, 2**63 - 1])
def test_a_parent_that_does_not_exist_is_refused(run: Run, parent: int) -> None:
    with pytest.raises(Refused, match=f"^INVALID_PARENT: parentId: there is no forum {parent}"):
        run("forums.create", name="New", parentId=parent)


@pytest.mark.parametrize("parent", [-2, "top", 1.5, True, [1]])
def test_a_parent_that_is_no_id_is_refused(run: Run, parent: object) -> None:
    with pytest.raises(Refused, match=r"^INVALID_PARENT: parentId must be a parent's id, or null for the top level"):
        run("forums.create", name="New", parentId=parent)


def test_a_parent_of_another_kind_is_no_parent(run: Run, community: Community) -> None:
    extra = run("calendars.create", name="Meetups of others")["id"]
    while extra <= community.staff:
        extra = run("calendars.create", name="More meetups")["id"]
    with pytest.raises(Refused, match=r"^INVALID_PARENT"):
        run("forums.create", name="New", parentId=extra)


@pytest.mark.parametrize("wish", ["before", "after"])
def test_a_sibling_must_stand_under_the_target_parent(run: Run, community: Community, wish: str) -> None:
    with pytest.raises(Refused, match=f"^INVALID_POSITION: {wish}: there is no other forum {community.releases} at the top level"):
        run("forums.create", name="New", **{wish: community.releases})
    with pytest.raises(
        Refused, match=f"^INVALID_POSITION: {wish}: there is no other forum {community.help} under {community.news}"
    ):
        run("forums.update", community.wiki, parentId=community.news, **{wish: community.help})
    with pytest.raises(Refused, match=f"^INVALID_POSITION: {wish}: there is no other forum 999 at the top level"):
        run("forums.update", community.wiki, **{wish: 999})


@pytest.mark.parametrize("wish", ["before", "after"])
def test_a_node_is_not_its_own_sibling(run: Run, community: Community, wish: str) -> None:
    with pytest.raises(Refused, match=r"^INVALID_POSITION"):
        run("forums.update", community.wiki, **{wish: community.wiki})


@pytest.mark.parametrize(
    "wishes", [{"position": 0, "before": 1}, {"before": 1, "after": 1}, {"position": 0, "before": 1, "after": 1}]
)
def test_at_most_one_place_can_be_wished_for(run: Run, community: Community, wishes: dict[str, int]) -> None:
    with pytest.raises(Refused, match=r"INVALID_POSITION: .*Send at most one of position, before and after") as refused:
        run("forums.create", name="New", **wishes)
    assert {fault.field for fault in refused.value.faults} == set(wishes)


@pytest.mark.parametrize("position", [-1, "first", None, 2**31])
def test_a_position_that_is_none_is_refused(run: Run, position: object) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE: position must be a whole number from 0"):
        run("forums.create", name="New", position=position)


def test_a_refused_move_leaves_every_place_as_it_was(run: Run, community: Community) -> None:
    with pytest.raises(Refused):
        run("forums.update", community.help, position=0, minContent=-1)
    assert names(run) == ["News", "Help", "Wiki", "Staff"]


def test_calendars_are_one_ordered_list(run: Run, community: Community) -> None:
    run("calendars.create", name="Deadlines", before=community.holidays)
    assert calendars(run) == ["Meetups", "Deadlines", "Holidays"]
    run("calendars.update", community.holidays, position=0)
    assert calendars(run) == ["Holidays", "Meetups", "Deadlines"]
    run("calendars.delete", community.meetups)
    assert calendars(run) == ["Holidays", "Deadlines"]


def test_calendars_have_no_parent(run: Run) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_PARAMETER: There is no parameter 'parentId'"):
        run("calendars.create", name="Deadlines", parentId=1)


def test_groups_have_no_place(run: Run) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_PARAMETER: There is no parameter 'position'"):
        run("groups.create", name="Editors", position=0)
