"""Change sets: events that belong together, and are undone together."""

from typing import Any

import pytest

from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Run, RunForEvent
from tests.statement_meter import StatementMeter
from trellis.core.actor import TERMINAL, Actor
from trellis.core.bounds import Bound
from trellis.core.events import find_undoing_events
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

ALL = Actor("key", 7, "Plugin", None)


def content(database: DatabaseState) -> dict[str, Any]:
    """What the community consists of, without the log of how it came to be so."""
    rows = database.rows()
    return {name: rows[name] for name in ("nodes", "sibling_blocks")}


def batch(gate: Gate, *operations: Any, actor: Actor = ALL, change_set: str | None = None) -> int:
    result = gate.run(Call("core.batch", actor, {"operations": list(operations)}, change_set=change_set))
    assert result.change_set is not None
    return result.change_set


def test_the_events_of_a_batch_belong_together(gate: Gate, database: DatabaseState) -> None:
    first = batch(
        gate, {"operation": "forums.create", "body": {"name": "A"}}, {"operation": "forums.create", "body": {"name": "B"}}
    )
    second = batch(gate, {"operation": "forums.create", "body": {"name": "C"}})
    assert [event["changeSet"] for event in database.events()] == [first, first, second]
    assert first != second


def test_the_writes_of_one_key_under_one_name_belong_together(gate: Gate, database: DatabaseState) -> None:
    other = Actor("key", 8, "Other", None)
    for actor, name in ((ALL, "night"), (other, "night"), (ALL, "night"), (ALL, None)):
        gate.run(Call("forums.create", actor, {"name": "N"}, change_set=name))
    mine, others, again, none = (event["changeSet"] for event in database.events())
    assert mine == again != others
    assert none is None


def test_a_night_s_work_is_undone_at_once(gate: Gate, run: Run, database: DatabaseState) -> None:
    old = run("forums.create", name="Old", permissions={"view": "*"})["id"]
    below = run("forums.create", name="Below", parentId=old)["id"]
    gone = run("calendars.create", name="Gone")["id"]
    before = content(database)
    work = batch(
        gate,
        {"operation": "forums.create", "as": "new", "body": {"name": "New"}},
        {"operation": "forums.update", "id": below, "body": {"parentId": {"$ref": "new.id"}}},
        {"operation": "forums.update", "id": old, "body": {"name": "Older", "permissions": {"view": []}}},
        {"operation": "forums.update", "id": {"$ref": "new.id"}, "body": {"name": "Newer"}},
        {"operation": "calendars.delete", "id": gone},
        {"operation": "forums.delete", "id": old},
    )
    assert run("forums.list")["totalResults"] == 2
    undone = run("changesets.restore", work)
    assert (undone["undoneCount"], undone["conflictCount"]) == (6, 0)
    after = content(database)
    for row in (*before["nodes"], *after["nodes"]):
        row.pop("updated_at")
    assert after == before


def test_creations_below_one_another_that_others_have_added_to_are_conflicts(gate: Gate, run: Run, database: DatabaseState) -> None:
    work = batch(
        gate,
        {"operation": "forums.create", "as": "top", "body": {"name": "Top"}},
        {"operation": "forums.create", "as": "below", "body": {"name": "Below", "parentId": {"$ref": "top.id"}}},
    )
    for parent in (1, 2):
        run("forums.create", name="Of somebody else", parentId=parent)
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", work)
    assert [one["message"] for one in refused.value.facts["conflicts"]] == ["CHANGED_SINCE", "CHANGED_SINCE"]


def test_the_undoing_can_be_undone(gate: Gate, run: Run) -> None:
    work = batch(
        gate,
        {"operation": "forums.create", "as": "a", "body": {"name": "A"}},
        {"operation": "forums.create", "body": {"name": "B", "parentId": {"$ref": "a.id"}}},
    )
    before = run("forums.tree")
    undoing = gate.run(Call("changesets.restore", ALL, target=work)).change_set
    assert run("forums.list")["totalResults"] == 0
    assert undoing is not None
    run("changesets.restore", undoing)
    assert run("forums.tree") == before


def test_a_conflict_stops_all_unless_it_may_be_skipped(gate: Gate, run: Run, database: DatabaseState) -> None:
    work = batch(gate, *({"operation": "forums.create", "body": {"name": name}} for name in "AB"))
    changed = run("forums.list")["results"][0]["id"]
    run("forums.update", changed, name="Changed by hand")
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", work)
    assert refused.value.message == "RESTORE_CONFLICTS"
    (conflict,) = refused.value.facts["conflicts"]
    assert (conflict["operation"], conflict["message"]) == ("forums.create", "CHANGED_SINCE")
    with database.unchanged():
        plan = run("changesets.restore", work, dryRun=True)
    assert (plan["dryRun"], plan["undoneCount"], plan["conflicts"]) == (True, 1, [conflict])
    done = run("changesets.restore", work, skipConflicts=True)
    assert (done["undoneCount"], done["conflictCount"]) == (1, 1)
    assert [one["name"] for one in run("forums.list")["results"]] == ["Changed by hand"]


def test_it_needs_the_grants_of_what_it_undoes(gate: Gate, database: DatabaseState) -> None:
    work = batch(
        gate, {"operation": "forums.create", "body": {"name": "A"}}, {"operation": "calendars.create", "body": {"name": "B"}}
    )
    owner = Actor("key", 7, "Plugin", frozenset({"forums.restore"}))
    with database.unchanged(), pytest.raises(Refused) as refused:
        gate.run(Call("changesets.restore", owner, target=work))
    assert refused.value.facts == {"missingOperation": "calendars.restore"}


def test_another_key_s_change_set_is_known_to_readers_of_events_only(gate: Gate, database: DatabaseState) -> None:
    work = batch(gate, {"operation": "forums.create", "body": {"name": "A"}})
    stranger = Actor("key", 8, "Other", frozenset({"forums.restore"}))
    answers = []
    with database.unchanged():
        for number in (work, 999):
            with pytest.raises(Refused) as refused:
                gate.run(Call("changesets.restore", stranger, target=number))
            answers.append(str(refused.value).replace(str(number), "N"))
    assert answers[0] == answers[1]
    reader = Actor("key", 8, "Other", frozenset({"forums.restore", "events.list"}))
    assert gate.run(Call("changesets.restore", reader, target=work)).value["undoneCount"] == 1


def test_a_grant_to_list_events_that_has_ended_shows_no_change_set_of_others(
    gate: Gate, database: DatabaseState, clock: Clock
) -> None:
    work = batch(gate, {"operation": "forums.create", "body": {"name": "A"}})
    clock.move(seconds=1)
    reader = Actor("key", 8, "Other", frozenset({"forums.restore", "events.list"}), {"events.list": Bound(until=clock.text)})
    with database.unchanged(), pytest.raises(Refused, match="INVALID_ID"):
        gate.run(Call("changesets.restore", reader, target=work))
    clock.move(seconds=-1)
    assert gate.run(Call("changesets.restore", reader, target=work)).value["undoneCount"] == 1


def test_what_was_undone_is_not_undone_again(gate: Gate, run: Run, database: DatabaseState) -> None:
    work = batch(gate, {"operation": "forums.create", "body": {"name": "A"}})
    run("changesets.restore", work)
    with database.unchanged():
        assert run("changesets.restore", work)["undoneCount"] == 0


def test_what_a_key_did_since_a_time_is_undone(gate: Gate, run: Run) -> None:
    run("forums.create", name="Mine")
    since = gate.now()
    for name in "AB":
        gate.run(Call("forums.create", ALL, {"name": name}))
    gate.run(Call("forums.create", Actor("key", 8, "Other", None), {"name": "Other"}))
    assert run("events.restore_of_key", 7, since=since)["undoneCount"] == 2
    assert [one["name"] for one in run("forums.list")["results"]] == ["Mine", "Other"]


def test_one_creation_is_undone_where_that_is_asked_for(run: Run, database: DatabaseState) -> None:
    run("forums.create", name="A")
    seq = database.events()[-1]["seq"]
    with database.unchanged(), pytest.raises(Refused, match="NOT_RESTORABLE"):
        run("events.restore", seq)
    assert run("events.restore", seq, deleteCreated=True)["deleted"]["count"] == 1


def test_what_is_undone_is_counted_by_operation(gate: Gate, run: Run) -> None:
    work = batch(
        gate,
        *({"operation": "forums.create", "as": name, "body": {"name": name}} for name in "AB"),
        {"operation": "forums.update", "id": {"$ref": "A.id"}, "body": {"name": "C"}},
        {"operation": "calendars.create", "body": {"name": "D"}},
    )
    expected = [("calendars.create", 1), ("forums.create", 2), ("forums.update", 1)]
    for raw in ({"dryRun": True}, {}):
        found = run("changesets.restore", work, **raw)["counts"]
        assert [(one["operation"], one["count"]) for one in found] == expected


def test_events_of_other_resources_are_conflicts_that_say_so(gate: Gate, run: Run, database: DatabaseState) -> None:
    since = gate.now()
    raw = {"url": "https://hooks.example/in", "events": ["forum.created"]}
    gate.run(Call("webhooks.create", ALL, raw))
    seq = database.events()[-1]["seq"]
    (conflict,) = run("events.restore_of_key", 7, since=since, dryRun=True)["conflicts"]
    assert conflict["message"] == "NOT_RESTORABLE"
    assert conflict["detail"] == f"Event {seq} is webhooks.create, but only changes of nodes and keys can be undone."


def test_the_events_of_a_change_set_are_found_and_counted(gate: Gate, run: Run, database: DatabaseState) -> None:
    run("forums.create", name="Before")
    work = batch(gate, *({"operation": "forums.create", "body": {"name": name}} for name in "AB"))
    other = batch(gate, {"operation": "forums.create", "body": {"name": "C"}})
    alone, *parts = (event["seq"] for event in database.events())
    assert [event["seq"] for event in run("events.search", changeSet=work)["results"]] == parts[1::-1]
    assert [event["seq"] for event in run("events.search", changeSet=other)["results"]] == parts[2:]
    assert run("events.search", changeSet=999)["results"] == []
    counted = [run("events.get", seq) for seq in (alone, *parts)]
    assert [(event["changeSet"], event["changeSetCount"]) for event in counted] == [(None, 0), (work, 2), (work, 2), (other, 1)]


def test_the_time_since_which_a_key_s_work_is_undone_must_be_given(gate: Gate, run: Run, database: DatabaseState) -> None:
    gate.run(Call("forums.create", ALL, {"name": "A"}))
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("events.restore_of_key", 7)
    assert [fault.field for fault in refused.value.faults] == ["since"]


def test_a_creation_tells_what_undid_it(gate: Gate, run: Run, database: DatabaseState) -> None:
    work = batch(gate, {"operation": "forums.create", "body": {"name": "A"}})
    made = database.events()[-1]["seq"]
    assert run("events.get", made)["undo"] is None
    undoing = gate.run(Call("changesets.restore", ALL, target=work))
    assert run("events.get", made)["undo"] == {"kept": True, "undoneBy": undoing.event, "open": False}
    run("changesets.restore", undoing.change_set)
    assert run("events.get", made)["undo"] is None


def undo_and_redo(gate: Gate, database: DatabaseState, work: int) -> dict[str, Any]:
    """Undo a change set, and undo that; return what was there in between."""
    later = content(database)
    undoing = gate.run(Call("changesets.restore", ALL, target=work)).change_set
    assert undoing is not None
    between = content(database)
    gate.run(Call("changesets.restore", ALL, target=undoing))
    assert timeless(content(database)) == timeless(later)
    return timeless(between)


def timeless(content: dict[str, Any]) -> dict[str, Any]:
    return {name: [row | {"updated_at": ""} for row in rows] for name, rows in content.items()}


def test_moving_children_away_is_undone_and_done_again(gate: Gate, run: Run, database: DatabaseState) -> None:
    old, other = (run("forums.create", name=name)["id"] for name in ("Old", "Other"))
    for parent, name in ((old, "A"), (other, "B"), (old, "C")):
        run("forums.create", name=name, parentId=parent)
    before = timeless(content(database))
    work = batch(gate, {"operation": "forums.delete", "id": old, "body": {"deleteChildrenOrMove": other}})
    assert undo_and_redo(gate, database, work) == before


def test_children_that_came_since_are_not_deleted(gate: Gate, run: Run, database: DatabaseState) -> None:
    old, other = (run("forums.create", name=name)["id"] for name in ("Old", "Other"))
    run("forums.create", name="A", parentId=old)
    work = batch(gate, {"operation": "forums.delete", "id": old, "body": {"deleteChildrenOrMove": other}})
    undoing = gate.run(Call("changesets.restore", ALL, target=work)).change_set
    run("forums.create", name="Since", parentId=old)
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", undoing)
    assert refused.value.facts["conflicts"][0]["message"] == "CHANGED_SINCE"


def test_deleting_a_group_is_undone_and_done_again(gate: Gate, run: Run, database: DatabaseState) -> None:
    group = run("groups.create", name="Mods")["id"]
    run("forums.create", name="A", permissions={"view": [group], "add": [3, group]})
    before = timeless(content(database))
    work = batch(gate, {"operation": "groups.delete", "id": group})
    assert undo_and_redo(gate, database, work) == before
    assert run("check.list")["problems"] == []


def test_a_group_that_others_have_named_is_not_deleted(gate: Gate, run: Run, database: DatabaseState) -> None:
    made = gate.run(Call("groups.create", TERMINAL, {"name": "Mods"}, change_set="night"))
    forum = run("forums.create", name="A", permissions={"view": [made.value["id"]]})["id"]
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", made.change_set)
    assert f"forums {forum}" in refused.value.facts["conflicts"][0]["detail"]
    run("forums.update", forum, permissions={"view": []})
    assert run("changesets.restore", made.change_set)["undoneCount"] == 1


def test_what_was_undone_within_a_change_set_stands_in_no_one_s_way(gate: Gate, run: Run) -> None:
    since = gate.now()
    made = gate.run(Call("forums.create", ALL, {"name": "A"}))
    changed = gate.run(Call("forums.update", ALL, {"name": "B"}, made.value["id"]))
    undone = gate.run(Call("events.restore", ALL, target=changed.event))
    gate.run(Call("events.restore", ALL, target=undone.event))
    gate.run(Call("forums.update", ALL, {"name": "C"}, made.value["id"]))
    assert run("events.restore_of_key", 7, since=since)["undone"][-1]["operation"] == "forums.create"
    assert run("forums.list")["totalResults"] == 0


def test_a_change_that_was_undone_by_its_own_key_stays_undone(gate: Gate, run: Run) -> None:
    made, since = run("forums.create", name="A")["id"], gate.now()
    changed = gate.run(Call("forums.update", ALL, {"name": "B"}, made))
    gate.run(Call("events.restore", ALL, target=changed.event))
    assert run("events.restore_of_key", 7, since=since)["undoneCount"] == 0
    assert run("forums.get", made)["name"] == "A"


def test_a_position_that_others_have_shifted_is_no_conflict(gate: Gate, run: Run, database: DatabaseState) -> None:
    one, two, _ = (run("calendars.create", name=name)["id"] for name in ("One", "Two", "Three"))
    before = timeless(content(database))
    work = batch(
        gate,
        {"operation": "calendars.update", "id": two, "body": {"name": "Zwei"}},
        {"operation": "calendars.update", "id": one, "body": {"position": 2}},
        {"operation": "calendars.update", "id": two, "body": {"position": 2}},
    )
    assert undo_and_redo(gate, database, work) == before


def test_a_change_set_of_more_events_than_a_statement_has_parameters(gate: Gate) -> None:
    with gate.store.reading() as tx:
        assert find_undoing_events(tx, range(1, 100_000)) == {}


def test_whether_an_event_is_undone_is_one_statement_however_often_it_was_undone_and_redone(
    gate: Gate, run: Run, do: RunForEvent
) -> None:
    line = [do("forums.update", run("forums.create", name="A")["id"], name="B")]
    for _ in range(7):
        line.append(do("forums.restore", line[-1]))
    with gate.store.reading() as tx, StatementMeter() as meter:
        assert find_undoing_events(tx, line) == dict(zip(line[0::2], line[1::2], strict=True))
        assert find_undoing_events(tx, line[:2]) == {line[0]: line[1]}
    assert meter.count == 2


def test_what_was_undone_is_kept_though_nothing_of_the_oldest_event_was_left_to_undo(
    gate: Gate, run: Run, database: DatabaseState
) -> None:
    patrons = run("groups.create", name="Patrons")["id"]
    forum = run("forums.create", name="Betas", permissions={"read": [patrons]})["id"]
    work = batch(
        gate,
        {"operation": "forums.update", "id": forum, "body": {"permissions": {"read": []}}},
        {"operation": "forums.create", "body": {"name": "New"}},
    )
    run("groups.delete", patrons)
    known = len(database.events())
    undone = gate.run(Call("changesets.restore", ALL, target=work))
    assert undone.value["undoneCount"] == 2
    assert [one["name"] for one in run("forums.list")["results"]] == ["Betas"]
    assert len(database.events()) == known + 1
    assert undone.event == database.events()[-1]["seq"] == undone.value["undone"][0]["by"]
