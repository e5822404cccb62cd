"""Undoing many events of which one undid another: together they have changed nothing, unless the undo did not bring all back."""

from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

KEY = Actor("key", 7, "Plugin", None)


@pytest.fixture
def act(gate: Gate) -> Any:
    """Run a write as the key, and give the number of its event."""

    def run(operation: str, target: int | None = None, /, **raw: Any) -> int | None:
        return gate.run(Call(operation, KEY, raw, target)).event

    return run


def places(run: Run) -> dict[str, str]:
    return {one["name"]: one["path"] for one in run("forums.list")["results"]}


def test_what_was_restored_to_another_place_goes_back_to_its_own(gate: Gate, run: Run, act: Any) -> None:
    old = run("forums.create", name="Old")["id"]
    news = run("forums.create", name="News", parentId=old)["id"]
    before, since = places(run), gate.now()
    deleted = act("forums.delete", news)
    act("forums.delete", old)
    act("forums.restore", deleted, parentId=None)
    assert places(run) == {"News": "News"}
    undone = run("events.restore_of_key", 7, since=since)
    assert (undone["undoneCount"], undone["conflictCount"]) == (3, 0)
    assert places(run) == before
    assert run("events.restore_of_key", 7, since=since)["undoneCount"] == 0


def test_a_child_that_was_left_behind_comes_back_with_the_others(gate: Gate, run: Run, act: Any) -> None:
    old, other, third = (run("forums.create", name=name)["id"] for name in ("Old", "Other", "Third"))
    child = run("forums.create", name="Child", parentId=old)["id"]
    before, since = places(run), gate.now()
    deleted = act("forums.delete", old, deleteChildrenOrMove=other)
    act("forums.update", child, parentId=third)
    act("forums.restore", deleted)
    assert places(run)["Child"] == "Third > Child"
    run("events.restore_of_key", 7, since=since)
    assert places(run) == before


def test_a_restore_that_cannot_be_undone_keeps_what_it_undid_as_it_is(gate: Gate, run: Run, act: Any) -> None:
    old = run("forums.create", name="Old")["id"]
    news = run("forums.create", name="News", parentId=old)["id"]
    since = gate.now()
    deleted = act("forums.delete", news)
    act("forums.delete", old)
    restored = act("forums.restore", deleted, parentId=None)
    run("forums.update", news, name="Changed by hand")
    with pytest.raises(Refused) as refused:
        run("events.restore_of_key", 7, since=since)
    assert [one["event"] for one in refused.value.facts["conflicts"]] == [restored]
    assert run("events.restore_of_key", 7, since=since, skipConflicts=True)["undoneCount"] == 1
    assert places(run) == {"Changed by hand": "Changed by hand", "Old": "Old"}
