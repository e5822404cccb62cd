"""Families of many siblings against a plain list: comers, goers and movers leave the order that the list says they leave."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.conftest import Fresh
from trellis.settings import Settings
from trellis.store import check, families, nodes, pages, shelving, siblings
from trellis.store.engine import Store
from trellis.store.families import Family
from trellis.store.nodes import Node
from trellis.store.pages import Query
from trellis.store.transaction import Transaction

HOUSE = 1  # a forum whose children are as many as those of the top level
ATTIC = 2  # one below it
picks = st.integers(0, 300)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shelves for four, so that few siblings stand on many, as high as they go."""
    monkeypatch.setattr(shelving, "CAPACITY", 4)


def planted(tx: Transaction, parent: int | None, place: int) -> int:
    """Plant a node; give its id."""
    new = nodes.next_number(tx, "forums", more=1)
    nodes.insert(tx, "forums", Node(new, parent, 0, f"N{new}", {}, {}, "2026-01", "2026-01"), place)
    return new


def delete(tx: Transaction, node: int) -> None:
    """Delete a node with all below it."""
    found = nodes.find(tx, "forums", node)
    assert found is not None
    nodes.delete_subtree(tx, "forums", found)


class Siblings(RuleBasedStateMachine):
    """Three families, and a list of ids for each. Each step is a transaction."""

    fresh: ClassVar[Callable[[], Settings]]

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(type(self).fresh())
        self.lists: dict[int | None, list[int]] = {None: [], HOUSE: [], ATTIC: []}

    def teardown(self) -> None:
        self.store.close()

    def write(self, change: Callable[[Transaction], Any]) -> Any:
        return self.store.write(change).result(30)

    @initialize(many=st.integers(0, 90))
    def begin(self, many: int) -> None:
        """A house with an attic, and children of the house, each before those that are there."""
        self.lists[None].append(self.write(lambda tx: planted(tx, None, 0)))
        self.lists[HOUSE].append(self.write(lambda tx: planted(tx, HOUSE, 0)))
        self.lists[HOUSE][:0] = reversed(self.write(lambda tx: [planted(tx, HOUSE, 0) for _ in range(many)]))

    @rule(parent=st.sampled_from([None, HOUSE, ATTIC]), place=picks, many=st.integers(1, 30), at_end=st.booleans())
    def come(self, parent: int | None, place: int, many: int, at_end: bool) -> None:
        line = self.lists[parent]
        for _ in range(many):
            at = len(line) if at_end else place % (len(line) + 1)
            line.insert(at, self.write(partial(planted, parent=parent, place=at)))

    @rule(parent=st.sampled_from([None, HOUSE, ATTIC]), place=picks, many=st.integers(1, 30))
    def go(self, parent: int | None, place: int, many: int) -> None:
        line = self.lists[parent]
        for _ in range(many):
            leaves = [node for node in line if node not in {HOUSE, ATTIC}]
            if not leaves:
                return
            gone = leaves[place % len(leaves)]
            self.write(partial(delete, node=gone))
            line.remove(gone)

    @rule(old=st.sampled_from([None, HOUSE, ATTIC]), new=st.sampled_from([None, HOUSE, ATTIC]), place=picks, to=picks)
    def move(self, old: int | None, new: int | None, place: int, to: int) -> None:
        leaves = [node for node in self.lists[old] if node not in {HOUSE, ATTIC}]
        if not leaves:
            return
        node = leaves[place % len(leaves)]
        was = self.lists[old].index(node)
        self.lists[old].remove(node)
        at = to % (len(self.lists[new]) + 1)
        self.lists[new].insert(at, node)
        if old == new:
            self.write(lambda tx: Family(tx, "forums", old).slide(node, was, at))
        else:
            self.write(lambda tx: families.move(tx, "forums", node, old, new, at))

    @rule(to_house=st.booleans())
    def adopt(self, to_house: bool) -> None:
        parent, to = (ATTIC, HOUSE) if to_house else (HOUSE, ATTIC)
        if ATTIC in self.lists[HOUSE] and not to_house:
            self.lists[HOUSE].remove(ATTIC)
            self.lists[None].append(ATTIC)
            self.write(lambda tx: families.move(tx, "forums", ATTIC, HOUSE, None, len(self.lists[None]) - 1))
        self.write(lambda tx: families.adopt(tx, "forums", parent, to, "2026-02"))
        self.lists[to] += self.lists[parent]
        self.lists[parent] = []

    @invariant()
    def the_rows_agree_with_the_lists(self) -> None:
        with self.store.reading() as tx:
            kept = {node.id: (node.parent_id, node.position) for node in nodes.every(tx, "forums")}
            told = {parent: siblings.children(tx, "forums", parent) for parent in self.lists}
            counted = siblings.counts(tx, "forums", [HOUSE, ATTIC])
            wrong = check.uneven(tx, "forums")
            by_place = pages.page(tx, "forums", Query({}, "position", limit=1000))[1]
        assert told == self.lists
        assert kept == {node: (parent, at) for parent, line in self.lists.items() for at, node in enumerate(line)}
        assert counted == {parent: len(self.lists[parent]) for parent in (HOUSE, ATTIC) if self.lists[parent]}
        assert wrong == []
        places = [(at, node) for line in self.lists.values() for at, node in enumerate(line)]
        assert [(node.position, node.id) for node in by_place] == sorted(places)


def test_any_sequence_of_comers_goers_and_movers_leaves_the_order_of_a_list(fresh: Fresh, small: None) -> None:
    here = type("Here", (Siblings,), {"fresh": staticmethod(fresh)})
    bounded = settings(max_examples=15, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
    run_state_machine_as_test(here, settings=bounded)


@pytest.fixture
def store(settings: Settings, small: None) -> Iterator[Store]:
    store = Store(settings)
    yield store
    store.close()


@pytest.fixture
def order(store: Store) -> list[int]:
    """The ids of 150 forums at the top level, in their order; and a house with 3 children behind the first of them."""

    def plant(tx: Transaction) -> list[int]:
        line: list[int] = []
        for number in range(150):
            line.insert(at := (number * 37) % (len(line) + 1), planted(tx, None, at))
        for place in range(3):
            planted(tx, line[0], place)
        return line

    made: list[int] = store.write(plant).result(30)
    return made
