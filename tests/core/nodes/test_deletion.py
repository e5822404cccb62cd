"""Deleting nodes: alone, with what is below, or with the children moved elsewhere."""

from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Events, Run
from tests.node_rows import order, write_by_hand
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.nodes import rows


def gone(run: Run, kind: str, target: int) -> bool:
    try:
        run(f"{kind}.get", target)
    except Refused as refused:
        return refused.message == "INVALID_ID"
    return False


@pytest.mark.parametrize(
    "which",
    [
        ("forums", "betas"),
        ("calendars", "meetups"),
        ("categories", "tools"),
        ("blogs", "notebook"),
        ("groups", "patrons"),
    ],
)
def test_a_deleted_node_is_gone_and_leaves_one_event(
    run: Run, community: Community, events: Events, which: tuple[str, str]
) -> None:
    kind, target = which[0], getattr(community, which[1])
    before, known = run(f"{kind}.get", target), len(events())
    total = run(f"{kind}.list")["totalResults"]
    assert run(f"{kind}.delete", target) is None
    assert gone(run, kind, target)
    assert run(f"{kind}.list")["totalResults"] == total - 1
    (event,) = events()[known:]
    assert (event["operation"], event["resourceId"], event["after"]) == (f"{kind}.delete", target, None)
    assert event["before"] == before


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("groups", "1C358/2"),
        ("forums", "1S359/1"),
        ("blogs", "1B366/6"),
        ("calendars", "1L364/6"),
        ("categories", "1D365/6"),
    ],
)
def test_an_id_that_names_nothing_is_refused_with_the_kinds_code(run: Run, kind: str, code: str, events: Events) -> None:
    with pytest.raises(Refused, match=r"^INVALID_ID: There is no .* with the id 999") as refused:
        run(f"{kind}.delete", 999)
    assert refused.value.code == code
    assert events() == []


def test_what_was_deleted_cannot_be_deleted_again(run: Run, community: Community) -> None:
    run("forums.delete", community.betas)
    with pytest.raises(Refused, match=r"^INVALID_ID"):
        run("forums.delete", community.betas)


def test_the_siblings_close_the_gap(run: Run, community: Community) -> None:
    run("forums.delete", community.help)
    assert order(run) == ["News", "Wiki", "Staff"]
    run("forums.delete", community.releases, deleteChildrenOrMove=-1)
    assert order(run, community.news) == ["Interviews"]


def test_a_node_with_children_is_kept_and_the_refusal_counts_them(run: Run, community: Community, events: Events) -> None:
    known = len(events())
    with pytest.raises(Refused) as refused:
        run("forums.delete", community.news)
    assert (refused.value.message, refused.value.code) == ("HAS_CHILDREN", "1S359/3")
    assert refused.value.detail.startswith("'News' has 2 children (3 descendants in all).")
    assert "deleteChildrenOrMove=-1" in refused.value.detail
    assert "deleteChildrenOrMove=ID" in refused.value.detail
    assert refused.value.facts == {
        "children": 2,
        "descendants": 3,
        "options": {"delete": -1, "move": "the id of another forum"},
    }
    assert not gone(run, "forums", community.news)
    assert len(events()) == known


def test_one_child_is_called_a_child(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"'Skins' has 1 child\. Send deleteChildrenOrMove=-1"):
        run("categories.delete", community.skins)


def test_deletes_of_a_missing_node_that_rows_name_as_their_parent_are_refused(
    settings: Settings, run: Run, community: Community
) -> None:
    """Only rows that were written by hand are like that, and `trellis check --repair` mends them."""
    write_by_hand(settings, "UPDATE nodes SET parent_id = 999 WHERE kind = 'forums' AND name = 'Betas'")
    with pytest.raises(Refused) as refused:
        run("core.batch", operations=[{"operation": "forums.delete", "id": number} for number in (community.help, 999)])
    assert (refused.value.facts["index"], refused.value.facts["problem"].message) == (1, "INVALID_ID")


def test_of_many_deletes_one_with_children_is_refused_with_their_number(run: Run, community: Community) -> None:
    with pytest.raises(Refused) as refused:
        run("core.batch", operations=[{"operation": "forums.delete", "id": number} for number in (community.help, community.news)])
    problem = refused.value.facts["problem"]
    assert (problem.facts["children"], problem.facts["descendants"]) == (2, 3)


def test_the_whole_subtree_can_be_deleted(run: Run, community: Community, events: Events) -> None:
    known = len(events())
    run("forums.delete", community.news, deleteChildrenOrMove="-1")
    assert all(gone(run, "forums", forum) for forum in (community.news, community.releases, community.betas, community.interviews))
    assert order(run) == ["Help", "Wiki", "Staff"]
    (event,) = events()[known:]
    assert event["touched"] == [
        {"resource": "forums", "id": forum, "how": "deleted"}
        for forum in (community.releases, community.interviews, community.betas)
    ]


def test_the_children_can_be_moved_behind_those_of_another(run: Run, community: Community, events: Events) -> None:
    run("forums.create", name="Minutes", parentId=community.staff)
    run("forums.delete", community.news, deleteChildrenOrMove=community.staff)
    assert order(run, community.staff) == ["Minutes", "Releases", "Interviews"]
    assert order(run) == ["Help", "Wiki", "Staff"]
    assert run("forums.get", community.betas)["path"] == "Staff > Releases > Betas"
    assert events()[-1]["touched"] == [
        {"resource": "forums", "id": forum, "how": "moved"} for forum in (community.releases, community.interviews)
    ]


def test_the_children_can_move_up_to_their_parents_parent(run: Run, community: Community) -> None:
    run("forums.delete", community.releases, deleteChildrenOrMove=community.news)
    assert order(run, community.news) == ["Interviews", "Betas"]


def test_the_children_can_move_to_a_sibling(run: Run, community: Community) -> None:
    run("forums.delete", community.releases, deleteChildrenOrMove=community.interviews)
    assert order(run, community.news) == ["Interviews"]
    assert order(run, community.interviews) == ["Betas"]


def test_moved_children_keep_their_permissions(run: Run, community: Community) -> None:
    before = run("forums.get", community.releases)["permissions"]
    run("forums.delete", community.news, deleteChildrenOrMove=community.help)
    assert run("forums.get", community.releases)["permissions"] == before


def test_moved_children_count_as_changed(run: Run, community: Community, clock: Any) -> None:
    clock.move(hours=1)
    run("forums.delete", community.news, deleteChildrenOrMove=community.help)
    changed = {forum["name"] for forum in run("forums.list", updatedSince=clock.text)["results"]}
    assert changed == {"Releases", "Interviews"}


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("nowhere", "there is no forum 999"),
        ("news", "it is the one being deleted"),
        ("releases", "is below the one being deleted"),
        ("betas", "is below the one being deleted"),
        ("wiki", "is a redirect and cannot have children"),
    ],
)
def test_a_target_that_cannot_take_the_children_is_refused(
    run: Run, community: Community, target: str, problem: str, events: Events
) -> None:
    known = len(events())
    with pytest.raises(Refused) as refused:
        run("forums.delete", community.news, deleteChildrenOrMove=getattr(community, target, 999))
    assert (refused.value.message, refused.value.code) == ("INVALID_TARGET", "1S359/2")
    assert problem in refused.value.detail
    assert [fault.field for fault in refused.value.faults] == ["deleteChildrenOrMove"]
    assert order(run, community.news) == ["Releases", "Interviews"]
    assert len(events()) == known


@pytest.mark.parametrize("fate", [0, -2, "all", None, 1.5, True])
def test_a_fate_that_makes_no_sense_is_refused(run: Run, community: Community, fate: object) -> None:
    with pytest.raises(Refused, match=r"^INVALID_TARGET: deleteChildrenOrMove must be -1 \(delete the children\) or the id"):
        run("forums.delete", community.news, deleteChildrenOrMove=fate)


def test_a_target_is_judged_even_where_there_are_no_children(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^INVALID_TARGET"):
        run("forums.delete", community.help, deleteChildrenOrMove=999)
    run("forums.delete", community.help, deleteChildrenOrMove=community.news)
    assert order(run, community.news) == ["Releases", "Interviews"]


def test_a_flat_kind_takes_the_parameter_and_has_no_use_for_it(run: Run, community: Community) -> None:
    run("calendars.delete", community.meetups, deleteChildrenOrMove=999)
    assert gone(run, "calendars", community.meetups)


def test_an_unknown_parameter_keeps_the_node(run: Run, community: Community) -> None:
    with pytest.raises(
        Refused,
        match=r"^UNKNOWN_PARAMETER: There is no parameter 'deleteChildren'. Did you mean deleteChildrenOrMove\?",
    ):
        run("forums.delete", community.betas, deleteChildren=1)
    assert not gone(run, "forums", community.betas)


@pytest.mark.parametrize(
    ("fate", "deleted", "moved"),
    [(-1, ["news", "releases", "interviews", "betas"], []), ("help", ["news"], ["releases", "interviews"])],
)
def test_a_dry_run_says_what_would_be_deleted_and_moved(
    run: Run, community: Community, events: Events, fate: int | str, deleted: list[str], moved: list[str]
) -> None:
    known, before = len(events()), run("forums.list")
    target = getattr(community, fate) if isinstance(fate, str) else None
    plan = run("forums.delete", community.news, deleteChildrenOrMove=target or fate, dryRun=True)
    assert plan == {
        "dryRun": True,
        "deleted": {"count": len(deleted), "ids": [getattr(community, name) for name in deleted]},
        "moved": {"count": len(moved), "ids": [getattr(community, name) for name in moved], "to": target},
        "changed": {"count": 0, "nodes": []},
    }
    assert run("forums.list") == before
    assert len(events()) == known


def test_a_dry_run_is_refused_where_the_real_one_would_be(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^HAS_CHILDREN"):
        run("forums.delete", community.news, dryRun=True)


def test_a_deep_tree_goes_at_once(gate: Gate, run: Run) -> None:
    parent = top = run("categories.create", name="0")["id"]
    for depth in range(1, 60):
        parent = run("categories.create", name=str(depth), parentId=parent)["id"]
    assert run("categories.get", parent)["path"] == " > ".join(map(str, range(60)))
    run("categories.delete", top, deleteChildrenOrMove=-1)
    with gate.store.reading() as tx:
        assert rows.find_all(tx, "categories") == []
    assert run("categories.list")["totalResults"] == 0


def test_a_delete_and_its_undoing_tell_how_far_they_are(
    gate: Gate, run: Run, community: Community, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "BATCH", 2)
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    run("forums.create", name="Notes", parentId=community.interviews)
    before = run("forums.list", sortBy="position")["results"]
    gate.run(Call("forums.delete", TERMINAL, {"deleteChildrenOrMove": -1}, community.news, progress=tell))
    assert told == [(2, 5), (4, 5), (5, 5)]
    told.clear()
    gate.run(Call("events.restore", TERMINAL, target=events()[-1]["seq"], progress=tell))
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert run("forums.list", sortBy="position")["results"] == before
    assert run("check.list")["problems"] == []

    told.clear()
    gate.run(Call("groups.delete", TERMINAL, target=community.patrons, progress=tell))
    last = told[-1][1]
    assert told == [(done, last) for done in range(1, last + 1)]
