"""Any change that is undone leaves every row as it was, whatever was done before it, in whatever tree.

Hypothesis makes up sequences of changes to forums, calendars and groups. Undone one after the other, the last first, they
lead back through every state the community was in, complete rows compared. Undone in any other order they are refused, or
leave a community in which the check finds nothing wrong.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.conftest import NewSettings
from tests.core.undo.machine import UndoMachine
from tests.node_rows import Rows, timeless
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.errors import Refused

picks = st.integers(0, 30)
kinds = st.sampled_from(["forums", "categories", "calendars"])
OPTION = "add"  # one that each of these kinds has


class Community(UndoMachine):
    """A community, and the way back through its states: (operation, event, record, rows before) of each change."""

    def __init__(self) -> None:
        super().__init__()
        self.back: list[tuple[str, int, int, Rows]] = []
        self.events = 0

    def attempt(self, operation: str, target: int | None, **raw: Any) -> bool:
        """Make a change that may be refused, and remember what was before it; say whether it was made."""
        before = self.rows()
        try:
            answer = self.gate.run(Call(operation, TERMINAL, raw, target))
        except Refused:
            assert self.rows() == before
            return False
        if answer.event is not None:
            self.events = answer.event
            self.back.append((operation, answer.event, target or answer.value["id"], before))
        return True

    @initialize()
    def begin(self) -> None:
        self.create("forums", 0, None)
        self.create("forums", 1, None)
        self.create("forums", 2, 0)

    @rule(kind=st.sampled_from(["forums", "categories", "calendars", "groups"]), position=picks, parent=st.none() | picks)
    def create(self, kind: str, position: int, parent: int | None) -> None:
        place = {} if kind == "groups" else {"position": position}
        under = {} if parent is None or kind in {"groups", "calendars"} else {"parentId": self.pick(kind, parent)}
        self.attempt(f"{kind}.create", None, name="New", **place, **under)

    @rule(kind=kinds, node=picks, name=st.sampled_from(["One", "Two"]), group=st.none() | picks, everyone=st.booleans())
    def change(self, kind: str, node: int, name: str, group: int | None, everyone: bool) -> None:
        if (target := self.pick(kind, node)) is not None:
            who = "*" if everyone else [3, *filter(None, [None if group is None else self.pick("groups", group)])]
            self.attempt(f"{kind}.update", target, name=name, permissions={OPTION: who})

    @rule(node=picks, redirect=st.booleans())
    def turn(self, node: int, redirect: bool) -> None:
        becomes = {"type": "redirect", "redirectUrl": "https://elsewhere.example/"} if redirect else {"type": "category"}
        if (target := self.pick("forums", node)) is not None:
            self.attempt("forums.update", target, **becomes)

    @rule(kind=kinds, node=picks, parent=st.none() | picks, position=picks)
    def move(self, kind: str, node: int, parent: int | None, position: int) -> None:
        if (target := self.pick(kind, node)) is not None:
            under = {} if kind == "calendars" else {"parentId": None if parent is None else self.pick(kind, parent)}
            self.attempt(f"{kind}.update", target, position=position, **under)

    @rule(kind=st.sampled_from(["forums", "categories", "calendars", "groups"]), node=picks, fate=st.just(-1) | picks)
    def delete(self, kind: str, node: int, fate: int) -> None:
        if (target := self.pick(kind, node)) is not None:
            self.attempt(f"{kind}.delete", target, deleteChildrenOrMove=-1 if fate == -1 else self.pick(kind, fate))

    @rule(kind=kinds, node=picks)
    def delete_and_restore(self, kind: str, node: int) -> None:
        """restore(delete(x)) = x, down to the byte."""
        if (target := self.pick(kind, node)) is not None and self.attempt(f"{kind}.delete", target, deleteChildrenOrMove=-1):
            *_, (_, event, _, before) = self.back
            dry = self.run("events.restore", event, dryRun=True)
            assert target not in self.ids(kind)
            answer = self.run("events.restore", event)
            assert answer == {name: value for name, value in dry.items() if name != "dryRun"}
            self.events += 1
            assert self.rows() == before
            self.back.pop()

    @rule(kind=kinds, ticked=st.lists(picks, min_size=1, max_size=3))
    def lose_a_group_and_restore_it(self, kind: str, ticked: list[int]) -> None:
        """A group comes back with every permission that it had."""
        self.attempt("groups.create", None, name="Passing")
        group = max(self.ids("groups"))
        for number in ticked:
            if (target := self.pick(kind, number)) is not None:
                self.attempt(f"{kind}.update", target, permissions={OPTION: [3, group]})
        self.attempt("groups.delete", group)
        *_, (_, event, _, before) = self.back
        self.run("events.restore", event)
        self.events += 1
        assert timeless(self.rows()) == timeless(before)
        self.back.pop()

    def ids(self, kind: str) -> set[int]:
        return {id for name, id in self.rows() if name == kind}

    @precondition(lambda self: self.back)
    @rule()
    def undo_the_last(self) -> None:
        """Every state comes back, apart from when records were changed: undoing is a change."""
        operation, event, target, before = self.back.pop()
        kind, _, verb = operation.partition(".")
        if verb == "create":
            self.run(f"{kind}.delete", target, deleteChildrenOrMove=-1)
        else:
            assert self.run("events.restore", event)["event"] == event
        self.events += 1
        assert timeless(self.rows()) == timeless(before)

    @precondition(lambda self: len(self.back) > 1)
    @rule(which=picks)
    def undo_any(self, which: int) -> None:
        """Whatever comes of it, it is all or nothing, and the community stays sound."""
        before = self.rows()
        _, event, _, _ = self.back[which % len(self.back)]
        message = ""
        try:
            self.run("events.restore", event)
        except Refused as refused:
            message = refused.message
        assert message in {"", "NOT_RESTORABLE", "CHANGED_SINCE", "PARENT_NEEDED"}
        if message:
            assert self.rows() == before
        else:
            self.events += self.rows() != before
            self.back.clear()

    @invariant()
    def every_change_is_in_the_log(self) -> None:
        newest = self.run("events.list", order="newest", limit=1)["results"]
        assert [event["seq"] for event in newest] == [self.events] * (self.events > 0)


@pytest.mark.slow
def test_undone_changes_leave_every_row_as_it_was(new_settings: NewSettings, small_blocks: None) -> None:
    """Bounded: enough to meet every rule in many states, and done in a few seconds."""
    here = type("Here", (Community,), {"new_settings": new_settings})
    bounded = settings(max_examples=settings().max_examples // 8, stateful_step_count=25)
    run_state_machine_as_test(here, settings=bounded)
