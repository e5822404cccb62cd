"""Taking back a delete, an update, a move: what comes back, where it goes, what is refused and why."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.community import ADMINISTRATORS, MEMBERS, Community
from tests.fixture_types import Clock, Events, Run, RunForEvent
from tests.memory_meter import MemoryMeter
from tests.node_rows import order, rows_of
from tests.statement_meter import StatementMeter
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.languages import load_language
from trellis.store import snapshots


def refused(run: Run, event: int, message: str, **raw: Any) -> Refused:
    with pytest.raises(Refused) as refusal:
        run("events.restore", event, **raw)
    assert refusal.value.message == message, refusal.value
    return refusal.value


# --- deletes ------------------------------------------------------------------------------------------------------


def test_a_deleted_subtree_comes_back_as_it_was_row_for_row(
    gate: Gate, run: Run, community: Community, do: RunForEvent, clock: Clock
) -> None:
    run("forums.update", community.releases, password="sesame")
    before = rows_of(gate)
    assert before[community.releases]["fields"]["password"].startswith("$argon2")
    event = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    clock.move(days=1)
    answer = run("events.restore", event)
    assert rows_of(gate) == before
    assert answer["record"] == run("forums.get", community.news)
    assert answer["restored"] == {"count": 4, "ids": [community.news, community.releases, community.interviews, community.betas]}
    assert (answer["event"], answer["operation"]) == (event, "forums.delete")
    assert (answer["moved"]["count"], answer["changed"]["count"], answer["left"]["count"], answer["lostGroups"]) == (0, 0, 0, [])
    assert run("check.list")["problems"] == []
    assert run("forums.list")["totalResults"] == 7


@pytest.mark.parametrize(
    ("kind", "who"), [("calendars", "meetups"), ("categories", "tools"), ("blogs", "notebook"), ("groups", "patrons")]
)
def test_every_kind_comes_back(gate: Gate, run: Run, community: Community, do: RunForEvent, kind: str, who: str) -> None:
    before = rows_of(gate, kind)
    event = do(f"{kind}.delete", getattr(community, who))
    assert run("events.restore", event)["restored"]["ids"] == [getattr(community, who)]
    assert rows_of(gate, kind) == before


def test_a_restore_is_an_event_that_names_the_one_it_takes_back(
    run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    deleted = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    restored = do("events.restore", deleted)
    event = events()[-1]
    assert (event["seq"], event["type"], event["operation"], event["undoes"]) == (
        restored,
        "forum.restored",
        "forums.restore",
        deleted,
    )
    assert (event["resource"], event["resourceId"], event["before"]) == ("forums", community.news, None)
    assert event["after"] == run("forums.get", community.news)
    assert [(one["id"], one["how"]) for one in event["touched"]] == [
        (community.releases, "restored"), (community.interviews, "restored"), (community.betas, "restored")
    ]  # fmt: skip


def test_ids_go_on_where_they_were(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.staff)
    between = run("forums.create", name="Between")["id"]
    run("events.restore", event)
    assert run("forums.create", name="Behind")["id"] == between + 1 == community.staff + 2


def test_a_dry_run_says_what_would_come_back_and_keeps_nothing(
    gate: Gate, run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    event = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    before, known = rows_of(gate), len(events())
    plan = run("events.restore", event, dryRun=True)
    assert (rows_of(gate), len(events())) == (before, known)
    answer = run("events.restore", event)
    assert plan == answer | {"dryRun": True}


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [
        ((), ["News", "Help", "Wiki", "Staff"]),
        ((("forums.create", None, {"name": "New", "position": 0}),), ["New", "News", "Help", "Wiki", "Staff"]),
        ((("forums.update", "news", {"position": 9}),), ["Wiki", "Staff", "News", "Help"]),
        ((("forums.update", "wiki", {"position": 9}),), ["News", "Help", "Staff", "Wiki"]),
        ((("forums.update", "news", {"parentId": "staff"}),), ["Help", "Wiki", "Staff"]),
        ((("forums.update", "news", {"parentId": "staff"}), ("forums.delete", "wiki", {})), ["Help", "Staff"]),
    ],
)
def test_it_goes_to_its_old_neighbours_side(
    run: Run, community: Community, do: RunForEvent, meanwhile: Any, expected: list[str]
) -> None:
    event = do("forums.delete", community.help)
    for operation, who, raw in meanwhile:
        run(operation, getattr(community, who) if who else None, **{n: getattr(community, str(v), v) for n, v in raw.items()})
    run("events.restore", event)
    assert order(run) == expected


def test_without_any_neighbour_it_goes_to_its_old_place(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("calendars.delete", community.holidays)
    run("calendars.delete", community.meetups)
    for name in ("A", "B", "C"):
        run("calendars.create", name=name)
    run("events.restore", event)
    found = run("calendars.list", sortBy="position")["results"]
    assert [calendar["name"] for calendar in found] == ["A", "Holidays", "B", "C"]


def test_a_parent_that_is_gone_asks_for_a_target(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.betas)
    run("forums.delete", community.releases)
    refusal = refused(run, event, "PARENT_NEEDED")
    assert f"there is no forum {community.releases}." in refusal.detail
    assert refusal.facts == {"parentId": community.releases}
    assert run("events.restore", event, parentId=community.help)["record"]["path"] == "Help > Betas"
    assert order(run, community.help) == ["Betas"]


def test_a_parent_that_takes_no_children_now_asks_for_a_target(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.betas)
    run("forums.update", community.releases, type="redirect", redirectUrl="https://elsewhere.example/")
    assert "is a redirect" in refused(run, event, "PARENT_NEEDED").detail
    assert run("events.restore", event, parentId=None)["record"]["parentId"] is None


def test_a_target_may_be_chosen_though_the_parent_is_there(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.releases, deleteChildrenOrMove=-1)
    run("events.restore", event, parentId="root")
    assert order(run) == ["News", "Help", "Wiki", "Staff", "Releases"]
    assert run("forums.get", community.betas)["path"] == "Releases > Betas"


@pytest.mark.parametrize(
    ("target", "problem"), [(999, "there is no forum 999"), ("wiki", "is a redirect"), ("betas", "there is no forum")]
)
def test_a_target_that_cannot_take_it_is_refused(
    run: Run, community: Community, do: RunForEvent, target: Any, problem: str
) -> None:
    event = do("forums.delete", community.releases, deleteChildrenOrMove=-1)
    refusal = refused(run, event, "INVALID_PARENT", parentId=getattr(community, str(target), target))
    assert problem in refusal.detail
    assert [fault.field for fault in refusal.faults] == ["parentId"]


def test_a_redirect_comes_back_as_one(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.wiki)
    assert run("events.restore", event)["record"]["redirectUrl"] == "https://wiki.example/"


def test_a_kind_without_trees_takes_no_target(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("calendars.delete", community.meetups)
    refused(run, event, "UNKNOWN_PARAMETER", parentId=1)


def test_what_was_restored_already_is_not_restored_again(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.help)
    by = do("events.restore", event)
    refusal = refused(run, event, "NOT_RESTORABLE")
    assert f"has already been undone, by event {by}" in refusal.detail
    assert refusal.facts == {"undoneBy": by}
    again = do("forums.delete", community.help)
    refused(run, event, "NOT_RESTORABLE")
    run("events.restore", again)


def test_what_lies_below_a_record_that_undo_would_delete_is_counted_in_words(
    run: Run, community: Community, do: RunForEvent
) -> None:
    created = do("forums.create", name="Club")
    (club,) = (one["id"] for one in run("forums.list", search="Club")["results"])
    run("forums.create", name="Chess", parentId=club)
    told = f"forum {club}: move or delete"
    one = run_refused(run, created)
    assert f"1 forum that event {created} did not create is now below {told} it first." in one
    run("forums.create", name="Go", parentId=club)
    assert f"2 forums that event {created} did not create are now below {told} them first." in run_refused(run, created)


def run_refused(run: Run, event: int) -> str:
    with pytest.raises(Refused) as refusal:
        run("events.restore", event, deleteCreated=True)
    return str(refusal.value.detail)


def test_what_the_undo_of_another_delete_has_brought_back_is_not_restored_again(
    run: Run, community: Community, do: RunForEvent
) -> None:
    first = do("forums.delete", community.releases, deleteChildrenOrMove=-1)
    second = do("forums.restore", do("forums.restore", first), deleteCreated=True)
    run("forums.restore", first)
    assert f"forum {community.releases}, which is there again" in refused(run, second, "NOT_RESTORABLE").detail
    run("forums.update", community.betas, parentId=community.help)
    run("forums.delete", community.releases)
    assert f"forum {community.betas}, which is there again" in refused(run, second, "NOT_RESTORABLE").detail


# --- children that had moved --------------------------------------------------------------------------------------


def test_children_come_back_that_still_stand_where_they_were_moved(
    gate: Gate, run: Run, community: Community, do: RunForEvent
) -> None:
    before = rows_of(gate)
    event = do("forums.delete", community.news, deleteChildrenOrMove=community.staff)
    answer = run("events.restore", event)
    assert answer["moved"] == {"count": 2, "ids": [community.releases, community.interviews]}
    assert rows_of(gate) == before
    assert order(run, community.staff) == []


@pytest.mark.usefixtures("small_blocks")
def test_a_large_family_comes_back_in_its_ids_in_order(run: Run, community: Community, do: RunForEvent) -> None:
    """More than a shelf takes: deleted with all below, and moved behind few and behind many."""
    house = run("forums.create", name="House")["id"]
    run_all(run, [create("Room", house, 0)] * 20)
    there = ids_in_order(run, house)
    for fate in (-1, community.help, community.news):
        gone = do("forums.delete", house, deleteChildrenOrMove=fate)
        assert fate == -1 or ids_in_order(run, fate)[-20:] == there
        run("events.restore", gone)
        assert ids_in_order(run, house) == there
        assert run("check.list")["problems"] == []


def ids_in_order(run: Run, parent: int) -> list[int]:
    return [child["id"] for child in run("forums.list", parentId=parent, sortBy="position", perPage=1000)["results"]]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("others", [0, 3, 12])
def test_undoing_the_return_of_children_puts_them_between_what_came_meanwhile(run: Run, do: RunForEvent, others: int) -> None:
    old, new = (run("forums.create", name=name)["id"] for name in ("Old", "New"))
    run_all(run, [create(f"here-{n}", new) for n in range(others)] + [create(f"child-{n}", old) for n in range(9)])
    away = do("forums.delete", old, deleteChildrenOrMove=new)
    moved = [name for name in order(run, new) if name.startswith("child")]
    run_all(run, [create(name, new, position) for name, position in (("in-front", 0), ("between", others + 4), ("last", None))])
    before = order(run, new)
    assert before == ["in-front", *before[1 : others + 1], *moved[:3], "between", *moved[3:], "last"]
    back = do("forums.restore", away)
    assert order(run, old) == moved
    assert order(run, new) == [name for name in before if name not in moved]
    again = do("forums.restore", back, deleteCreated=True)
    assert order(run, new) == before
    run("forums.restore", again)
    assert order(run, old) == moved
    assert run("check.list")["problems"] == []


def create(name: str, parent: int, position: int | None = None) -> dict[str, Any]:
    place = {} if position is None else {"position": position}
    return {"operation": "forums.create", "body": {"name": name, "parentId": parent, **place}}


def run_all(run: Run, operations: Sequence[dict[str, Any]]) -> None:
    run("core.batch", operations=operations)


def test_work_does_not_grow_with_the_number_of_children_that_are_moved(run: Run, community: Community, do: RunForEvent) -> None:
    counts: list[tuple[int, ...]] = []
    for size in (10, 50):
        parent = run("forums.create", name="Parent")["id"]
        run_all(run, [create(f"{n}", parent) for n in range(size)])
        with StatementMeter() as away:
            moved = do("forums.delete", parent, deleteChildrenOrMove=community.help)
        with StatementMeter() as back:
            returned = do("forums.restore", moved)
        with StatementMeter() as again:
            do("forums.restore", returned, deleteCreated=True)
        counts.append((away.count, back.count, again.count))
    assert all(many < few + 10 for few, many in zip(*counts, strict=True)), counts  # of 40 more children


def test_work_does_not_grow_with_the_number_of_records_that_are_deleted_again(run: Run, do: RunForEvent, clock: Clock) -> None:
    counts = []
    for size in (5, 20):
        parent = run("forums.create", name="Parent")["id"]
        run_all(run, [create(f"{n}", parent) for n in range(size)])
        clock.move(hours=1)
        back = do("forums.restore", do("forums.delete", parent, deleteChildrenOrMove=-1))
        with StatementMeter() as again:
            do("forums.restore", back, deleteCreated=True)
        counts.append(again.count)
    assert counts[0] == counts[1]


def test_children_stay_that_have_moved_on_or_are_gone(run: Run, community: Community, do: RunForEvent) -> None:
    third = run("forums.create", name="Third", parentId=community.news)["id"]
    event = do("forums.delete", community.news, deleteChildrenOrMove=community.staff)
    run("forums.update", community.releases, parentId=community.help)
    run("forums.delete", community.interviews)
    answer = run("events.restore", event)
    assert answer["moved"] == {"count": 1, "ids": [third]}
    assert answer["left"] == {
        "count": 2,
        "nodes": [
            {"resource": "forums", "id": community.releases, "why": "It has been moved elsewhere since."},
            {"resource": "forums", "id": community.interviews, "why": "It has been deleted since."},
        ],
    }
    assert (order(run, community.news), order(run, community.help)) == (["Third"], ["Releases"])


def test_a_child_below_which_its_old_parent_comes_back_stays(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.releases, deleteChildrenOrMove=community.staff)
    run("forums.update", community.news, parentId=community.betas)
    answer = run("events.restore", event)
    assert answer["record"]["path"] == "Staff > Betas > News > Releases"
    assert [one["why"] for one in answer["left"]["nodes"]] == ["The restored node is below it now."]
    assert run("check.list")["count"] == 0


# --- groups -------------------------------------------------------------------------------------------------------


def test_the_ticks_of_a_group_that_is_gone_fall_away_and_it_says_so(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.delete", community.betas)
    run("groups.delete", community.patrons)
    answer = run("events.restore", event)
    assert answer["lostGroups"] == [community.patrons]
    assert answer["record"]["permissions"]["read"] == []
    assert run("check.list")["count"] == 0


def test_a_blog_loses_a_group_that_is_gone_too(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("blogs.delete", community.notebook)
    run("groups.delete", community.patrons)
    answer = run("events.restore", event)
    assert (answer["lostGroups"], answer["record"]["groups"]) == ([community.patrons], [MEMBERS])


def test_a_group_comes_back_with_its_ticks(gate: Gate, run: Run, community: Community, do: RunForEvent, clock: Clock) -> None:
    kinds = ("groups", "forums", "categories", "blogs")
    before = {kind: rows_of(gate, kind) for kind in kinds}
    event = do("groups.delete", community.patrons)
    clock.move(hours=1)
    answer = run("events.restore", event)
    named = {
        ("forums", community.betas),
        ("categories", community.skins),
        ("categories", community.dark_skins),
        ("blogs", community.notebook),
    }
    assert {(one["resource"], one["id"]) for one in answer["changed"]["nodes"]} == named
    after = {kind: rows_of(gate, kind) for kind in kinds}
    for kind, id in named:
        assert after[kind][id]["updated_at"] == clock.text
        after[kind][id]["updated_at"] = before[kind][id]["updated_at"]
    assert after == before


def test_a_tick_that_was_changed_meanwhile_is_left_as_it_is(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("groups.delete", community.patrons)
    run("forums.update", community.betas, permissions={"read": [MEMBERS]})
    run("blogs.update", community.notebook, pinned=True)
    run("categories.delete", community.skins, deleteChildrenOrMove=-1)
    answer = run("events.restore", event)
    assert [(one["resource"], one["id"]) for one in answer["changed"]["nodes"]] == [("blogs", community.notebook)]
    assert {(one["id"], one["why"]) for one in answer["left"]["nodes"] if one["resource"] == "forums"} == {
        (community.betas, "Changed since then: read.")
    }
    assert {one["why"] for one in answer["left"]["nodes"] if one["resource"] == "categories"} == {"It has been deleted since."}
    assert run("forums.get", community.betas)["permissions"]["read"] == [MEMBERS]
    assert run("blogs.get", community.notebook)["groups"] == [MEMBERS, community.patrons]


# --- updates and moves --------------------------------------------------------------------------------------------


def test_an_update_is_reverted(gate: Gate, run: Run, community: Community, do: RunForEvent, clock: Clock, events: Events) -> None:
    run("forums.update", community.help, password="sesame")
    before = rows_of(gate)
    clock.move(hours=1)
    event = do(
        "forums.update", community.help, name="Questions", password="open", permissions={"view": [ADMINISTRATORS]}, position=0
    )
    clock.move(hours=1)
    answer = run("events.restore", event)
    after = rows_of(gate)
    assert after[community.help]["updated_at"] == clock.text
    after[community.help]["updated_at"] = before[community.help]["updated_at"]
    assert after == before
    assert (answer["restored"], answer["record"]) == ({"count": 1, "ids": [community.help]}, run("forums.get", community.help))
    told = events()[-1]
    assert set(told["changed"]) == {"name", "url", "position", "path", "permissions", "password"}
    assert (told["type"], told["undoes"], told["before"]["name"], told["after"]["name"]) == (
        "forum.restored",
        event,
        "Questions",
        "Help",
    )


def test_a_move_is_reverted_to_the_old_neighbours_side(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.releases, parentId=community.help)
    run("forums.create", name="First", parentId=community.news, position=0)
    run("events.restore", event)
    assert order(run, community.news) == ["First", "Releases", "Interviews"]
    assert run("forums.get", community.betas)["path"] == "News > Releases > Betas"


def test_a_reverted_change_can_be_made_again_by_undoing_the_undo(run: Run, community: Community, do: RunForEvent) -> None:
    update = do("forums.update", community.help, name="Questions")
    undo = do("events.restore", update)
    redo = do("events.restore", undo)
    assert run("forums.get", community.help)["name"] == "Questions"
    refused(run, undo, "NOT_RESTORABLE")
    run("events.restore", update)
    assert run("forums.get", community.help)["name"] == "Help"
    assert redo == undo + 1


def test_what_was_changed_again_since_is_refused_with_the_difference(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.help, name="Questions")
    later = do(
        "forums.update", community.help, name="Answers", password="sesame", permissions={"view": []}, parentId=community.news
    )
    refusal = refused(run, event, "CHANGED_SINCE")
    assert f"(by event {later})" in refusal.detail
    assert refusal.facts["differences"] == [
        {"field": "name", "then": "Questions", "now": "Answers"},
        {"field": "parentId", "then": None, "now": community.news},
        {"field": "password"},
        {"field": "permissions.view", "then": "*", "now": []},
    ]
    assert "argon2" not in str(refusal.facts)
    run("events.restore", later)
    run("events.restore", event)
    assert run("forums.get", community.help)["name"] == "Help"


def test_a_later_move_among_siblings_is_a_difference_and_their_shifting_is_none(
    run: Run, community: Community, do: RunForEvent
) -> None:
    event = do("forums.update", community.help, name="Questions")
    run("forums.update", community.staff, position=0)
    run("events.restore", event)
    event = do("forums.update", community.help, position=0)
    run("forums.update", community.help, position=3)
    assert [d["field"] for d in refused(run, event, "CHANGED_SINCE").facts["differences"]] == ["position"]


def test_what_was_changed_and_changed_back_can_be_undone(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.help, name="Questions")
    run("forums.update", community.help, name="Answers")
    run("forums.update", community.help, name="Questions")
    assert run("events.restore", event)["record"]["name"] == "Help"


def test_what_was_deleted_since_says_by_which_event(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.betas, name="Alphas")
    deleted = do("forums.delete", community.releases, deleteChildrenOrMove=-1)
    refusal = refused(run, event, "CHANGED_SINCE")
    assert refusal.facts == {"differences": [], "deletedBy": deleted}
    run("events.restore", deleted)
    assert run("events.restore", event)["record"]["name"] == "Betas"


def test_a_move_back_needs_a_parent_that_can_take_it(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.betas, parentId=community.help)
    run("forums.update", community.releases, parentId=community.betas)
    assert "is below it" in refused(run, event, "PARENT_NEEDED").detail
    assert run("events.restore", event, parentId=community.staff)["record"]["path"] == "Staff > Betas"


def test_a_target_for_what_did_not_move_is_refused(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.betas, name="Alphas")
    assert "did not move" in refused(run, event, "INVALID_PARENT", parentId=community.help).detail


def test_what_has_children_does_not_become_a_redirect_again(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.wiki, type="category")
    run("forums.create", name="Child", parentId=community.wiki)
    refusal = refused(run, event, "CHANGED_SINCE")
    assert refusal.facts["differences"] == [{"field": "children", "then": 0, "now": 1}]


def test_a_group_that_is_gone_is_no_change_since(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("forums.update", community.betas, name="Alphas", permissions={"add": [community.patrons]})
    run("groups.delete", community.patrons)
    answer = run("events.restore", event)
    assert (answer["record"]["name"], answer["lostGroups"]) == ("Betas", [community.patrons])
    assert answer["record"]["permissions"]["add"] == [ADMINISTRATORS, community.moderators]


def test_a_change_of_which_nothing_is_left_to_undo_leaves_no_event(
    run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    event = do("forums.update", community.betas, permissions={"read": []})
    run("groups.delete", community.patrons)
    known = len(events())
    answer = run("events.restore", event, dryRun=True)
    assert (answer["restored"]["count"], answer["lostGroups"], answer["dryRun"]) == (0, [community.patrons], True)
    assert run("events.restore", event)["record"] == run("forums.get", community.betas)
    assert len(events()) == known


# --- what cannot be undone ----------------------------------------------------------------------------------------


def test_what_was_made_or_brought_back_is_deleted_rather_than_undone(run: Run, community: Community, do: RunForEvent) -> None:
    made = do("forums.create", name="Polls")
    assert "To undo that, delete it. Or send deleteCreated (--delete-created)." in refused(run, made, "NOT_RESTORABLE").detail
    back = do("events.restore", do("forums.delete", community.help))
    assert "restored forum" in refused(run, back, "NOT_RESTORABLE").detail


def test_changes_of_administrators_cannot_be_undone(run: Run, do: RunForEvent) -> None:
    event = do("admins.create", name="Mira", login="mira", password="correct horse battery", mustChangePassword=False)
    detail = refused(run, event, "NOT_RESTORABLE").detail
    assert "only changes of nodes and keys can be undone" in detail
    assert "nur eine Änderung an Knoten und Schlüsseln" in load_language("de").sentence(detail)


def test_an_event_that_there_is_not_is_refused(run: Run, community: Community) -> None:
    refusal = refused(run, 999, "INVALID_ID")
    assert (refusal.code, refusal.detail) == ("1T106/5", "There is no event with the id 999.")


def test_an_operation_of_one_kind_does_not_undo_another(run: Run, community: Community, do: RunForEvent) -> None:
    event = do("calendars.delete", community.meetups)
    with pytest.raises(Refused, match=r"^NOT_RESTORABLE: .* forums\.restore undoes only forums"):
        run("forums.restore", event)
    assert run("calendars.restore", event)["record"]["name"] == "Meetups"


def test_a_purged_snapshot_is_told_even_where_part_of_it_is_left(
    gate: Gate, run: Run, community: Community, do: RunForEvent, clock: Clock
) -> None:
    event = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    clock.move(days=1)
    update = do("forums.update", community.help, name="Questions")
    assert gate.store.write(lambda tx: snapshots.purge(tx, clock.text, most=2)).result(30) == 2
    assert "changes can be undone for 30 days" in refused(run, event, "NO_LONGER_KEPT").detail
    assert gate.store.write(lambda tx: snapshots.purge(tx, clock.text)).result(30) == 2
    assert gate.store.write(lambda tx: snapshots.purge(tx, clock.text)).result(30) == 0
    refused(run, event, "NO_LONGER_KEPT")
    run("events.restore", update)


def test_a_write_keeps_the_rows_that_it_deleted_or_changed_and_no_others(
    gate: Gate, run: Run, community: Community, do: RunForEvent
) -> None:
    def kept(event: int) -> set[tuple[str, int, str]]:
        with gate.store.reading() as tx:
            changes: tuple[snapshots.Change, ...] = ("deleted", "moved", "changed")
            return {(kind, number, change) for change in changes for kind, number in snapshots.list_keys(tx, event, change)}

    assert kept(do("forums.create", name="New", position=0)) == set()
    assert kept(do("forums.update", community.help, position=0)) == {("forums", community.help, "changed")}
    last = do("forums.update", community.help, position=0)
    run("forums.update", community.help, name="Dry", dryRun=True)
    run("forums.delete", community.help, dryRun=True)
    assert kept(last + 1) == set()
    assert kept(do("forums.delete", community.releases, deleteChildrenOrMove=community.help)) == {
        ("forums", community.releases, "deleted"), ("forums", community.betas, "moved")
    }  # fmt: skip
    assert kept(do("groups.delete", community.moderators)) >= {
        ("groups", community.moderators, "deleted"),
        ("forums", community.staff, "changed"),
    }


def test_which_operation_undoes_an_event_is_found_without_what_the_event_touched(gate: Gate, do: RunForEvent, run: Run) -> None:
    """It is found before the write waits for its turn, on SQLite on the event loop."""
    top = int(run("forums.create", name="Top")["id"])
    run("core.batch", operations=[{"operation": "forums.create", "body": {"name": "Part", "parentId": top}}] * 500)
    event = do("forums.delete", top, deleteChildrenOrMove=-1)
    call = Call("events.restore", TERMINAL, target=event)
    gate.follow(call)
    with MemoryMeter(of_write=True) as meter:
        assert gate.follow(call).operation == "forums.restore"
    assert meter.peak < 50_000
