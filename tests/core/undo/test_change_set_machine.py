"""A change set that is undone leaves every row as it was, whatever is in it; undoing that again brings the later state back.

Hypothesis makes up change sets of all that a batch can do: nodes that refer to one another, moves, orders, copies, deletes of
subtrees and groups, and external ids that pass from one node to another.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from tests.conftest import NewSettings
from tests.core.undo.machine import UndoMachine
from tests.node_rows import Rows, timeless
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.errors import Refused

picks = st.integers(0, 20)
kinds = st.sampled_from(["forums", "calendars"])
external_ids = st.sampled_from([None, "a", "b"])
Step = tuple[str, str, int, int, int, str | None]
steps = st.tuples(
    st.sampled_from(
        ["create", "update", "name", "move", "delete", "delete", "copy", "order", "put", "delete_external", "group", "ungroup"]
    ),
    kinds,
    picks,
    picks,
    st.integers(-1, 3),
    external_ids,
)


class Community(UndoMachine):
    """A community whose change sets are undone, and the undoing undone."""

    def __init__(self) -> None:
        super().__init__()
        self.sets = 0

    def build(self, step: Step) -> dict[str, Any] | None:  # noqa: PLR0911  # one for each thing that can be done
        """Build an operation from what Hypothesis chose; None if there is nothing that it could be about."""
        what, kind, first, second, place, external_id = step
        rows = self.rows()
        node, other, group = self.pick(kind, first), self.pick(kind, second), self.pick("groups", second)
        who = {"permissions": {"add": [3, *([group] if group else [])]}}
        parent: dict[str, Any] = {"parentId": other if place >= 0 else None} if kind == "forums" else {}
        body: dict[str, Any] = {}
        if what == "create":
            body = {"name": "New", "externalId": external_id, **who, **parent}
            return {"operation": f"{kind}.create", "body": body}
        if what == "put":
            body = {"name": f"Put {place}", **(parent if place > 1 else {}), "externalId": external_id or "a"}
            return {"operation": f"{kind}.put_external", "body": body}
        if what == "delete_external":
            return {"operation": f"{kind}.delete_external", "body": {"externalId": external_id or "a", "deleteChildrenOrMove": -1}}
        if what == "group":
            return {"operation": "groups.create", "body": {"name": "Group"}}
        if what == "ungroup":
            return {"operation": "groups.delete", "id": group} if group else None
        if node is None:
            return None
        if what == "order":
            below = [id for (name, id), row in sorted(rows.items()) if name == kind and row["parent_id"] == other]
            ids = [*below[place:], *below[:place]][: place + 2] if kind == "forums" else [node]
            return (
                {"operation": f"{kind}.order", "body": {"ids": ids, **({"parentId": other} if kind == "forums" else {})}}
                if ids
                else None
            )
        bodies: dict[str, dict[str, Any]] = {
            "update": {"externalId": external_id, **who},
            "name": {"name": f"Name {place}", "externalId": external_id},
            "move": {"position": abs(place), **parent},
            "delete": {"deleteChildrenOrMove": other if place > 0 else -1},
            "copy": {"withChildren": place > 0, **parent} if kind == "forums" else {},
        }
        return {"operation": f"{kind}.{what if what in {'delete', 'copy'} else 'update'}", "id": node, "body": bodies[what]}

    def one_by_one(self, chosen: list[Step]) -> int | None:
        """Run steps as requests with one `Change-Set`; those that are refused change nothing."""
        self.sets += 1
        number = None
        for step in chosen:
            if (built := self.build(step)) is not None:
                before = self.rows()
                call = Call(built["operation"], TERMINAL, built.get("body", {}), built.get("id"), change_set=f"set-{self.sets}")
                try:
                    number = self.gate.run(call).change_set or number
                except Refused:
                    assert self.rows() == before
        return number

    @initialize()
    def begin(self) -> None:
        group = self.run("groups.create", name="Group")["id"]
        top = self.run("forums.create", name="Top", externalId="a", permissions={"add": [group]})["id"]
        for name in ("One", "Two", "Three"):
            self.run("forums.create", name=name, parentId=top)
            self.run("calendars.create", name=name)

    @rule(chosen=st.lists(steps, min_size=2, max_size=6), keep=st.booleans())
    def change(self, chosen: list[Step], keep: bool) -> None:
        before = self.rows()
        number = self.one_by_one(chosen)
        self.undo_and_redo(number, before, keep=keep)

    @rule(chosen=st.lists(steps, min_size=1, max_size=4), keep=st.booleans())
    def run_batch(self, chosen: list[Step], keep: bool) -> None:
        before = self.rows()
        made = {"operation": "forums.create", "as": "new", "body": {"name": "New", "externalId": "b"}}
        below = {"operation": "forums.create", "body": {"name": "Below", "parentId": {"$ref": "new.id"}}}
        gone = {
            "operation": "forums.delete",
            "id": {"$ref": "new.id"},
            "body": {"deleteChildrenOrMove": self.pick("forums", 0) or -1},
        }
        operations = [made, below, *(built for step in chosen if (built := self.build(step)) is not None), gone]
        raw = {"operations": operations if chosen[0][4] else operations[2:-1] or operations}
        try:
            dry = self.gate.run(Call("core.batch", TERMINAL, raw | {"dryRun": True})).value["results"]
            assert self.rows() == before
            result = self.gate.run(Call("core.batch", TERMINAL, raw))
            assert [one["operation"] for one in dry] == [one["operation"] for one in result.value["results"]]
            number = result.change_set
        except Refused:
            assert self.rows() == before
            return
        self.undo_and_redo(number, before, keep=keep)

    def undo_and_redo(self, number: int | None, before: Rows, *, keep: bool) -> None:
        if number is None:
            assert self.rows() == before
            return
        after = self.rows()
        for index, wanted in enumerate((before, after) if keep else (before, after, before)):
            if index:
                self.nothing_is_wrong()  # after the last one it is asked as the invariant
            undone = self.gate.run(Call("changesets.restore", TERMINAL, {}, number))
            assert undone.value["conflictCount"] == 0
            assert timeless(self.rows()) == timeless(wanted)
            if undone.change_set is None:
                assert timeless(before) == timeless(after)  # it was undone within the set
                return
            number = undone.change_set


@pytest.mark.slow
def test_change_sets_are_undone_and_redone_to_the_row(new_settings: NewSettings, small_blocks: None) -> None:
    """Bounded: enough to meet every step in many states, and done in a few seconds."""
    here = type("Here", (Community,), {"new_settings": new_settings})
    bounded = settings(max_examples=settings().max_examples // 6, stateful_step_count=4)
    run_state_machine_as_test(here, settings=bounded)
