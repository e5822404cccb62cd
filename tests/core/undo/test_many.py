"""Undoing many events: creations together, exactly as one by one; how many at once; and what is said of those that were purged."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.conftest import NewSettings, runner
from tests.database_state import DatabaseState, Rows
from tests.fixture_types import Clock, Run
from trellis.compose import compose
from trellis.core.actor import Actor
from trellis.core.events import find_undoing_events
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.undo import many
from trellis.errors import Refused
from trellis.store import events as log
from trellis.store import snapshots
from trellis.store.engine import Transaction
from trellis.store.nodes import rows

ALL = Actor("key", 7, "Plugin", None)
BY_HAND = Actor("admin", 1, "Mira", None)


def create(gate: Gate, count: int, name: str = "set") -> int:
    """Create calendars in one change set, and return its id."""
    found = {gate.run(Call("calendars.create", ALL, {"name": f"{n}"}, change_set=name)).change_set for n in range(count)}
    (number,) = found
    assert number is not None
    return number


# --- together, as one by one --------------------------------------------------------------------------------------


def build(gate: Gate, random: Random) -> int:
    """Create forums and calendars at random places, and touch some of them afterwards; return the change set."""
    own: list[int] = []
    for n in range(12):
        parent = random.choice([None, *own])
        own.append(gate.run(Call("forums.create", BY_HAND, {"name": f"Old {n}", "parentId": parent})).value["id"])
    made: list[int] = []
    number = None
    for n in range(40):
        if random.random() < 0.15:
            result = gate.run(Call("calendars.create", ALL, {"name": f"C{n}", "position": random.randrange(9)}, change_set="s"))
        elif random.random() < 0.1 and made:
            result = gate.run(Call("forums.update", ALL, {"name": f"Again {n}"}, random.choice(made), change_set="s"))
        else:
            raw = {"name": f"F{n}", "parentId": random.choice([None, None, *own, *made]), "position": random.randrange(12)}
            result = gate.run(Call("forums.create", ALL, raw, change_set="s"))
            made.append(result.value["id"])
        number = result.change_set
    for forum in random.sample(made, 4):
        gate.run(Call("forums.update", BY_HAND, {"name": f"By hand {forum}"}, forum))
    gate.run(Call("forums.create", BY_HAND, {"name": "Below", "parentId": random.choice(made)}))
    gate.run(Call("forums.update", BY_HAND, {"parentId": random.choice(own[:1]), "position": 0}, random.choice(made)))
    assert number is not None
    return number


def content(gate: Gate) -> tuple[Rows, list[Any]]:
    """What there is, without how the blocks of siblings are cut; and where each node is."""
    rows = DatabaseState(gate).rows()
    kept = {name: rows[name] for name in ("snapshots", "deleted_id_counts", "counters", "events")}
    for event in kept["events"]:
        event["change_set"] = None
    kept["counters"] = [row for row in kept["counters"] if row["name"] not in {"change_sets", "data version", "last purge"}]
    run = runner(gate)
    return kept, [run(f"{kind}.list", perPage=1000)["results"] for kind in ("forums", "calendars")]


@pytest.mark.usefixtures("small_blocks")
def test_creations_are_undone_together_as_they_are_one_by_one(new_settings: NewSettings) -> None:
    found = []
    for together in (True, False):
        gate = compose(settings := new_settings(), clock=Clock())
        number = build(gate, Random(0))  # noqa: S311  # the same each time
        if together:
            undone = gate.run(Call("changesets.restore", ALL, {"skipConflicts": True}, number))
            assert undone.value["undoneCount"] > 20
            assert undone.value["conflictCount"] > 0
        else:
            seqs = [event["seq"] for event in DatabaseState(gate).events() if event["changeSet"] == number]
            for seq in reversed(seqs):
                with suppress(Refused):
                    gate.run(Call("events.restore", ALL, {"deleteCreated": True}, seq))
        assert runner(gate)("check.list")["problems"] == []
        found.append(content(gate))
        gate.store.close()
        new_settings.drop(settings)
    assert found[0] == found[1]


@pytest.mark.usefixtures("small_blocks")
def test_a_parent_all_of_whose_children_are_undone_can_have_others(run: Run) -> None:
    parent = run("forums.create", name="Parent")["id"]
    creates = [{"operation": "forums.create", "body": {"name": f"{n}", "parentId": parent}} for n in range(10)]
    run("core.batch", operations=creates)
    run("changesets.restore", run("events.list", order="newest", limit=1)["results"][0]["changeSet"])
    assert run("check.list")["problems"] == []
    run("core.batch", operations=creates)
    there = run("forums.list", parentId=parent, sortBy="position")["results"]
    assert [(child["name"], child["position"]) for child in there] == [(f"{n}", n) for n in range(10)]


@pytest.mark.usefixtures("small_blocks")
def test_what_was_undone_together_comes_back_to_its_place(gate: Gate, run: Run) -> None:
    random = Random(0)  # noqa: S311  # the same each time
    run("core.batch", operations=[{"operation": "calendars.create", "body": {"name": f"Old {n}"}} for n in range(30)])
    steps = [{"operation": "calendars.create", "body": {"name": f"{n}", "position": random.randrange(30 + n)}} for n in range(40)]
    made = gate.run(Call("core.batch", ALL, {"operations": steps}))
    before = run("calendars.list", sortBy="position", perPage=1000)
    undoing = gate.run(Call("changesets.restore", ALL, target=made.change_set))
    assert undoing.value["undoneCount"] == 40
    run("changesets.restore", undoing.change_set)
    assert run("calendars.list", sortBy="position", perPage=1000) == before


def test_a_dry_run_of_many_changes_nothing(gate: Gate, run: Run, database: DatabaseState) -> None:
    number = create(gate, 5)
    with database.unchanged():
        plan = run("changesets.restore", number, dryRun=True)
    done = run("changesets.restore", number)
    assert {**plan, "undone": 0, "dryRun": 0} == {**done, "undone": 0, "dryRun": 0}
    assert [one["by"] for one in plan["undone"]] == [None] * 5


def test_many_need_their_grant(gate: Gate, database: DatabaseState) -> None:
    number = create(gate, 5)
    owner = Actor("key", 7, "Plugin", frozenset({"forums.restore"}))
    with database.unchanged(), pytest.raises(Refused) as refused:
        gate.run(Call("changesets.restore", owner, target=number))
    assert refused.value.facts == {"missingOperation": "calendars.restore"}


def test_more_creations_than_there_may_be_other_changes_are_undone_at_once(
    gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a parent, in trees, and beside others that stay; in several batches."""
    monkeypatch.setattr(rows, "BATCH", 50)
    monkeypatch.setattr(many, "MOST_SINGLY", 100)
    steps = [{"operation": "forums.create", "body": {"name": f"{n}"}} for n in range(40)]
    kept = run("forums.create", name="Stays")["id"]
    first = gate.run(Call("core.batch", ALL, {"operations": steps}, change_set="all")).value["results"][0]["result"]["id"]
    below = [{"operation": "forums.create", "body": {"name": f"{n}", "parentId": first + n % 10}} for n in range(40)]
    sets = {gate.run(Call("core.batch", ALL, {"operations": below}, change_set="all")).change_set for _ in range(2)}
    assert run("changesets.restore", *sets)["undoneCount"] == 120 > many.MOST_SINGLY
    assert [one["id"] for one in run("forums.list")["results"]] == [kept]
    assert run("check.list")["problems"] == []


# --- how many at once ---------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most six events at once, of which three one by one, and four are looked for at a time."""
    monkeypatch.setattr(many, "_PAGE", 4)
    monkeypatch.setattr(many, "MOST", 6)
    monkeypatch.setattr(many, "MOST_SINGLY", 3)


def advice(refused: Refused) -> int:
    assert refused.message == "CHANGE_SET_TOO_LARGE"
    return int(refused.detail.partition("Send after=")[2].partition(" ")[0])


@pytest.mark.usefixtures("few")
def test_what_is_too_large_is_undone_in_parts(gate: Gate, run: Run, database: DatabaseState) -> None:
    number = create(gate, 15)
    for left in (9, 3):
        with database.unchanged(), pytest.raises(Refused) as refused:
            run("changesets.restore", number)
        run("changesets.restore", number, after=advice(refused.value))
        assert run("calendars.list")["totalResults"] == left
    assert run("changesets.restore", number)["undoneCount"] == 3
    assert run("calendars.list")["totalResults"] == 0


@pytest.mark.usefixtures("few")
def test_changes_are_undone_in_smaller_parts(gate: Gate, run: Run, database: DatabaseState) -> None:
    calendar = run("calendars.create", name="0")["id"]
    (number,) = {gate.run(Call("calendars.update", ALL, {"name": name}, calendar, change_set="s")).change_set for name in "12345"}
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", number)
    assert run("changesets.restore", number, after=advice(refused.value))["undoneCount"] == 3
    assert run("calendars.get", calendar)["name"] == "2"
    assert run("changesets.restore", number)["undoneCount"] == 2
    assert run("calendars.get", calendar)["name"] == "0"


@pytest.mark.usefixtures("few")
def test_of_too_many_no_more_are_looked_at_than_can_be_undone(gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key may have millions of events, and all other writes wait meanwhile."""
    number, seen = create(gate, 40), list[int]()

    def note(tx: Transaction, seqs: Sequence[int]) -> dict[int, int]:
        seen.extend(seqs)
        return find_undoing_events(tx, seqs)

    monkeypatch.setattr(many, "find_undoing_events", note)
    for name, target, given in (
        ("changesets.restore", number, {}),
        ("events.restore_of_key", 7, {"since": "2000-01-01T00:00:00Z"}),
    ):
        seen.clear()
        with pytest.raises(Refused) as refused:
            run(name, target, **given)
        assert advice(refused.value) == 40 - 6
        assert seen == [*range(40, 32, -1)]


@pytest.mark.usefixtures("few")
def test_what_a_key_did_is_undone_in_parts_too(gate: Gate, run: Run) -> None:
    since = gate.now()
    create(gate, 8)
    with pytest.raises(Refused) as refused:
        run("events.restore_of_key", 7, since=since)
    assert run("events.restore_of_key", 7, since=since, after=advice(refused.value))["undoneCount"] == 6
    assert run("events.restore_of_key", 7, since=since)["undoneCount"] == 2


# --- what was purged ----------------------------------------------------------------------------------------------


def purge(gate: Gate, days: int = 90, most: int = 5000) -> None:
    before = gate.ago(timedelta(days=days))
    for delete in (log.purge_change_sets, log.purge):
        while gate.store.write(lambda tx, delete=delete: delete(tx, before, most)).result(30):  # type: ignore[misc]
            pass


@pytest.fixture
def half_purged(gate: Gate, clock: Clock) -> int:
    """A change set of three calendars and two, of which the three events of the first are not kept any more."""
    number = create(gate, 3)
    clock.move(days=60)
    assert create(gate, 2) == number
    clock.move(days=40)
    purge(gate, most=2)
    return number


def test_purged_events_are_a_conflict(run: Run, half_purged: int, database: DatabaseState) -> None:
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", half_purged)
    assert (refused.value.message, refused.value.facts) == ("RESTORE_CONFLICTS", {"conflicts": [], "purgedCount": 3})
    assert refused.value.detail.startswith("3 events have been purged and cannot be undone. Nothing was changed.")
    with database.unchanged():
        plan = run("changesets.restore", half_purged, dryRun=True)
    assert (plan["undoneCount"], plan["conflictCount"], plan["purgedCount"]) == (2, 0, 3)
    done = run("changesets.restore", half_purged, skipConflicts=True)
    assert (done["undoneCount"], done["purgedCount"]) == (2, 3)
    assert run("calendars.list")["totalResults"] == 3
    assert run("check.list")["problems"] == []


def test_the_newest_part_is_whole(run: Run, half_purged: int) -> None:
    assert run("changesets.restore", half_purged, after=3)["purgedCount"] == 0
    with pytest.raises(Refused, match="RESTORE_CONFLICTS: 3 events have been purged"):
        run("changesets.restore", half_purged)


def test_a_change_set_of_which_no_event_is_kept_is_a_conflict_until_it_is_forgotten(
    gate: Gate, run: Run, clock: Clock, half_purged: int, database: DatabaseState
) -> None:
    clock.move(days=60)
    gate.store.write(lambda tx: log.purge(tx, gate.ago(timedelta(days=90)))).result(30)
    with pytest.raises(Refused, match="RESTORE_CONFLICTS: 5 events have been purged"):
        run("changesets.restore", half_purged)
    purge(gate)
    with pytest.raises(Refused, match="INVALID_ID"):
        run("changesets.restore", half_purged)
    assert [row["name"] for row in database.rows()["counters"] if "change set" in row["name"]] == []


def test_a_key_s_events_may_have_been_purged(gate: Gate, run: Run, clock: Clock, database: DatabaseState) -> None:
    start = gate.now()
    create(gate, 3)
    clock.move(days=60)
    later = gate.now()
    create(gate, 2, "other")
    assert run("events.restore_of_key", 7, since=start, dryRun=True)["purgedCount"] == 0
    clock.move(days=40)
    purge(gate)
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("events.restore_of_key", 7, since=start)
    assert refused.value.facts["purgedCount"] is None
    assert "Older events have been purged, and some of them may be among those to undo." in refused.value.detail
    assert run("events.restore_of_key", 7, since=later)["undoneCount"] == 2
    assert run("events.restore_of_key", 7, since=start, skipConflicts=True)["purgedCount"] is None


def test_purged_rows_are_a_conflict(gate: Gate, run: Run, clock: Clock, database: DatabaseState) -> None:
    calendar = run("calendars.create", name="Old")["id"]
    gate.run(Call("calendars.update", ALL, {"name": "New"}, calendar, change_set="s"))
    clock.move(days=20)
    last = gate.run(Call("calendars.update", ALL, {"color": "#000000"}, calendar, change_set="s"))
    clock.move(days=20)
    gate.store.write(lambda tx: snapshots.purge(tx, gate.ago(timedelta(days=30)))).result(30)
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", last.change_set)
    assert [one["message"] for one in refused.value.facts["conflicts"]] == ["NO_LONGER_KEPT"]
    assert run("changesets.restore", last.change_set, skipConflicts=True)["undoneCount"] == 1
    assert run("calendars.get", calendar)["name"] == "New"


@pytest.mark.parametrize("left", [0, 1])
def test_branches_of_which_rows_were_purged_are_conflicts(
    gate: Gate, run: Run, clock: Clock, database: DatabaseState, left: int
) -> None:
    branches = []
    for name in ("One", "Two"):
        branches.append(run("forums.create", name=name)["id"])
        run("forums.create", name="Below", parentId=branches[-1])
    sets = []
    for branch in branches:
        call = Call("forums.delete", ALL, {"deleteChildrenOrMove": -1}, branch, change_set="s")
        sets.append(gate.run(call).change_set)
        clock.move(days=1)
    gate.store.write(lambda tx: snapshots.purge(tx, clock.text, most=4 - left)).result(30)
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", sets[0])
    assert [one["message"] for one in refused.value.facts["conflicts"]] == ["NO_LONGER_KEPT"] * 2


def test_branches_of_which_a_part_is_there_again_are_conflicts(gate: Gate, run: Run, database: DatabaseState) -> None:
    top = run("forums.create", name="Top")["id"]
    branches = [run("forums.create", name=name)["id"] for name in ("One", "Two")]
    below = [run("forums.create", name="Below", parentId=branch)["id"] for branch in branches]
    steps = [{"operation": "forums.delete", "id": branch, "body": {"deleteChildrenOrMove": -1}} for branch in branches]
    gone = [gate.run(Call("core.batch", ALL, {"operations": steps})).change_set]
    for _ in range(3):  # they are brought back, deleted by undoing that, and brought back again, by undoing the first delete
        gone.append(gate.run(Call("changesets.restore", ALL, {}, gone[0 if len(gone) == 3 else -1])).change_set)
    run("core.batch", operations=[{"operation": "forums.update", "id": node, "body": {"parentId": top}} for node in below])
    run("core.batch", operations=[{"operation": "forums.delete", "id": branch} for branch in branches])
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("changesets.restore", gone[2])
    assert [one["message"] for one in refused.value.facts["conflicts"]] == ["NOT_RESTORABLE"] * 2
    assert "there again" in refused.value.facts["conflicts"][0]["detail"]
