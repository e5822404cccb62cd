"""Any sequence of creating, moving, changing and deleting leaves the tree that a plain model says it leaves.

Hypothesis makes up the sequences, valid and invalid steps mixed. After every step the database is compared with the model:
no cycle, no orphan, no gap in the order, one event for each success, and not a trace of refusals and dry runs.
"""

from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from tests.conftest import NewSettings
from tests.core.machine import CommunityMachine
from trellis.errors import Refused
from trellis.store.events import log
from trellis.store.lists import pages
from trellis.store.nodes import rows

ROOT = None
picks = st.integers(0, 30)  # which of the nodes there are; some of them point past the end, to no node
wishes = st.sampled_from(["last", "position", "before", "after"])


class Model:
    """A tree as a list of children for each parent; the rules of placement said once more, in the plainest way."""

    def __init__(self) -> None:
        self.children: dict[int | None, list[int]] = {ROOT: []}
        self.redirects: set[int] = set()
        self.last_id = 0

    @property
    def ids(self) -> list[int]:
        return [node for node in self.children if node is not None]

    def parent(self, node: int) -> int | None:
        return next(parent for parent, row in self.children.items() if node in row)

    def below(self, node: int) -> list[int]:
        return [one for child in self.children.get(node, ()) for one in (child, *self.below(child))]

    def takes(self, parent: int | None, node: int | None = None) -> bool:
        """Whether a parent can take a node."""
        return parent is ROOT or (
            parent in self.children and parent not in self.redirects and (node is None or parent not in (node, *self.below(node)))
        )

    def place(self, parent: int | None, wish: str, value: int, node: int | None) -> int | None:
        """Where among its new siblings a node goes; None if there is no such place."""
        row = [one for one in self.children[parent] if one != node]
        if wish in {"before", "after"}:
            return row.index(value) + (wish == "after") if value in row else None
        return min(value, len(row)) if wish == "position" else len(row)

    def put(self, node: int, parent: int | None, place: int) -> None:
        for row in self.children.values():
            if node in row:
                row.remove(node)
        self.children[parent].insert(place, node)

    def drop(self, node: int) -> None:
        self.children[self.parent(node)].remove(node)
        for gone in (*self.below(node), node):
            del self.children[gone]
            self.redirects.discard(gone)


class Forums(CommunityMachine):
    """Forums of a new community, and their model."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.events = 0

    def pick(self, number: int) -> int:
        """A node; or an id that was never given out."""
        ids = self.model.ids
        return ids[number % len(ids)] if ids and number % 7 else ids[-1] if ids and number % 2 else self.model.last_id + 1000

    def attempt(self, operation: str, target: int | None, raw: dict[str, Any], *, good: bool) -> Any:
        """Run an operation that must succeed or be refused; a success leaves an event unless it changed nothing."""
        if not good:
            with pytest.raises(Refused):
                self.run(operation, target, **raw)
            return None
        before = self.run("forums.get", target) if operation == "forums.update" else None
        dry = bool(raw.get("dryRun"))
        answer = self.run(operation, target, **raw)
        changed = before is None or {**answer, "updatedAt": ""} != {**before, "updatedAt": ""}
        self.events += changed and not dry
        return answer

    @initialize()
    def begin(self) -> None:
        """Two at the top; below the first of them two, and below the first of these one."""
        for number, under in enumerate((ROOT, ROOT, 1, 1, 3), start=1):
            self.attempt("forums.create", None, {"name": "New", "parentId": under}, good=True)
            self.model.children[number] = []
            self.model.put(number, under, len(self.model.children[under]))
            self.model.last_id = number

    @rule(parent=st.none() | picks, wish=wishes, value=picks, redirect=st.booleans(), dry=st.booleans())
    def create(self, parent: int | None, wish: str, value: int, redirect: bool, dry: bool) -> None:
        under, raw, place, good = self.wanted(None, parent, wish, value)
        raw |= {"name": "New", "dryRun": dry}
        if redirect:
            raw |= {"type": "redirect", "redirectUrl": "https://elsewhere.example/"}
        made = self.attempt("forums.create", None, raw, good=good)
        if good:
            assert (made["id"], made["parentId"], made["position"]) == (self.model.last_id + 1, under, place)
        if good and not dry:
            self.model.last_id += 1
            self.model.children[self.model.last_id] = []
            self.model.put(self.model.last_id, under, cast("int", place))
            if redirect:
                self.model.redirects.add(self.model.last_id)

    @rule(node=picks, parent=st.none() | picks, wish=wishes, value=picks, dry=st.booleans())
    def move(self, node: int, parent: int | None, wish: str, value: int, dry: bool) -> None:
        moved = self.pick(node)
        under, raw, place, good = self.wanted(moved, parent, wish, value)
        known = moved in self.model.children
        if known and wish == "last" and self.model.parent(moved) == under:
            place, good = self.model.children[under].index(moved), True  # nothing was asked for
        answer = self.attempt("forums.update", moved, raw | {"dryRun": dry}, good=known and good)
        if known and good:
            assert (answer["parentId"], answer["position"]) == (under, place)
        if known and good and not dry:
            self.model.put(moved, under, cast("int", place))

    def wanted(
        self, node: int | None, parent: int | None, wish: str, value: int
    ) -> tuple[int | None, dict[str, Any], int | None, bool]:
        """A wish in the words of a request, and what the model thinks of it."""
        under = ROOT if parent is None else self.pick(parent)
        number = value if wish == "position" else self.pick(value)
        raw: dict[str, Any] = {"parentId": under} | ({} if wish == "last" else {wish: number})
        takes = self.model.takes(under, node)
        place = self.model.place(under, wish, number, node) if under in self.model.children else None
        return under, raw, place, takes and place is not None

    @rule(node=picks, name=st.sampled_from(["New", "Other", " Other ", ""]), redirect=st.booleans())
    def change(self, node: int, name: str, redirect: bool) -> None:
        changed = self.pick(node)
        known = changed in self.model.children
        becomes = {"type": "redirect", "redirectUrl": "https://elsewhere.example/"} if redirect else {}
        full = known and bool(self.model.children[changed])
        good = known and bool(name) and not (redirect and full)
        self.attempt("forums.update", changed, {"name": name} | becomes, good=good)
        if good and redirect:
            self.model.redirects.add(changed)

    @rule(node=picks, fate=st.sampled_from([None, -1]) | picks, dry=st.booleans())
    def delete(self, node: int, fate: int | None, dry: bool) -> None:
        gone = self.pick(node)
        known = gone in self.model.children
        target = fate if fate in {None, -1} else self.pick(fate)
        moves = target not in {None, -1}
        takes = target != gone and target in self.model.children and self.model.takes(target, gone if known else None)
        good = known and (takes if moves else target == -1 or not self.model.children[gone])
        raw = ({} if target is None else {"deleteChildrenOrMove": target}) | {"dryRun": dry}
        self.attempt("forums.delete", gone, raw, good=good)
        if good and not dry:
            if moves:
                self.model.children[target] += self.model.children[gone]
                self.model.children[gone] = []
            self.model.drop(gone)

    @invariant()
    def the_database_agrees_with_the_model(self) -> None:
        with self.gate.store.reading() as tx:
            kept = {node.id: node for node in rows.find_all(tx, "forums")}
            total, _ = pages.read_page(tx, "forums", pages.Query({}, offset=100))
            events = log.read_page(tx, {}, 1, None, newest_first=True)
        assert set(kept) == set(self.model.ids)
        assert total == len(kept)
        for parent, row in self.model.children.items():
            assert [kept[node].parent_id for node in row] == [parent] * len(row)
            assert [kept[node].position for node in row] == list(range(len(row)))
        assert {node for node in kept if kept[node].fields["type"] == "redirect"} == self.model.redirects
        assert [event.seq for event in events] == [self.events]


def test_any_sequence_of_steps_leaves_the_tree_that_the_model_says(new_settings: NewSettings, small_blocks: None) -> None:
    """Bounded: enough to meet every rule in many states, and done in a few seconds."""
    here = type("Here", (Forums,), {"new_settings": new_settings})
    bounded = settings(max_examples=settings().max_examples // 6, stateful_step_count=30)
    run_state_machine_as_test(here, settings=bounded)
