"""Families of many siblings against a plain list: comers, goers and movers leave the order that the list says they leave."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.conftest import NewSettings
from trellis.settings import Settings
from trellis.store import check
from trellis.store.counters import next_number
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction
from trellis.store.lists import pages
from trellis.store.lists.pages import Query
from trellis.store.nodes import rows
from trellis.store.nodes.rows import Node
from trellis.store.siblings import moves, positions
from trellis.store.siblings.moves import Family

HOUSE = 1  # a forum whose children are as many as those of the top level
ATTIC = 2  # one below it
picks = st.integers(0, 300)


def planted(tx: Transaction, parent: int | None, place: int) -> int:
    """Plant a node; give its id."""
    new = next_number(tx, "forums", more=1)
    rows.insert(tx, "forums", Node(new, parent, 0, f"N{new}", {}, {}, "2026-01", "2026-01"), place)
    return new


def delete(tx: Transaction, node: int) -> None:
    """Delete a node with all below it."""
    found = rows.find(tx, "forums", node)
    assert found is not None
    rows.delete_subtree(tx, "forums", found)


class Siblings(RuleBasedStateMachine):
    """Three families, and a list of ids for each. Each step is a transaction."""

    new_settings: ClassVar[Callable[[], Settings]]

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(type(self).new_settings())
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
            self.write(lambda tx: moves.move(tx, "forums", node, old, new, at))

    @rule(to_house=st.booleans())
    def adopt(self, to_house: bool) -> None:
        parent, to = (ATTIC, HOUSE) if to_house else (HOUSE, ATTIC)
        if ATTIC in self.lists[HOUSE] and not to_house:
            self.lists[HOUSE].remove(ATTIC)
            self.lists[None].append(ATTIC)
            self.write(lambda tx: moves.move(tx, "forums", ATTIC, HOUSE, None, len(self.lists[None]) - 1))
        self.write(lambda tx: moves.adopt(tx, "forums", parent, to, "2026-02"))
        self.lists[to] += self.lists[parent]
        self.lists[parent] = []

    @invariant()
    def the_rows_agree_with_the_lists(self) -> None:
        with self.store.reading() as tx:
            kept = {node.id: (node.parent_id, node.position) for node in rows.every(tx, "forums")}
            told = {parent: positions.children(tx, "forums", parent) for parent in self.lists}
            counted = positions.counts(tx, "forums", [HOUSE, ATTIC])
            wrong = check.uneven(tx, "forums")
            by_place = pages.page(tx, "forums", Query({}, "position", limit=1000))[1]
        assert told == self.lists
        assert kept == {node: (parent, at) for parent, line in self.lists.items() for at, node in enumerate(line)}
        assert counted == {parent: len(self.lists[parent]) for parent in (HOUSE, ATTIC) if self.lists[parent]}
        assert wrong == []
        places = [(at, node) for line in self.lists.values() for at, node in enumerate(line)]
        assert [(node.position, node.id) for node in by_place] == sorted(places)


def test_any_sequence_of_comers_goers_and_movers_leaves_the_order_of_a_list(new_settings: NewSettings, small_blocks: None) -> None:
    here = type("Here", (Siblings,), {"new_settings": staticmethod(new_settings)})
    bounded = settings(max_examples=settings().max_examples // 6, stateful_step_count=25)
    run_state_machine_as_test(here, settings=bounded)


@pytest.fixture
def store(settings: Settings, small_blocks: None) -> Iterator[Store]:
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


def page(store: Store, **query: Any) -> tuple[int, list[tuple[int, int]]]:
    with store.reading() as tx:
        total, found = pages.page(tx, "forums", Query(sort_by="position", **query))
    return total, [(node.id, node.position) for node in found]


@pytest.mark.parametrize("offset", [0, 1, 70, 145, 149, 150, 400])
@pytest.mark.parametrize("descending", [False, True])
def test_any_page_of_a_family_is_found_by_place(store: Store, order: list[int], offset: int, descending: bool) -> None:
    line = [(node, at) for at, node in enumerate(order)]
    expected = (line[::-1] if descending else line)[offset : offset + 10]
    given: dict[str, Any] = {"limit": 10, "offset": offset, "descending": descending}
    assert page(store, filters={"top": True}, **given) == (150, expected)
    some = [(node, at) for node, at in (line[::-1] if descending else line) if "7" in f"n{node}"]
    assert page(store, filters={"top": True, "search": "7"}, **given) == (len(some), some[offset : offset + 10])
    few = [(151, 0), (152, 1), (153, 2)]
    assert page(store, filters={"parent": order[0]}, **given) == (3, (few[::-1] if descending else few)[offset : offset + 10])


@pytest.mark.parametrize("offset", [0, 1, 70, 145, 152, 153])
@pytest.mark.parametrize("descending", [False, True])
def test_any_page_of_all_nodes_is_found_by_place_and_then_by_id(
    store: Store, order: list[int], offset: int, descending: bool
) -> None:
    places = [(at, node) for at, node in enumerate(order)] + [(at, 151 + at) for at in range(3)]
    places.sort(key=lambda one: (-one[0] if descending else one[0], one[1]))
    line = [(node, at) for at, node in places]
    given: dict[str, Any] = {"limit": 10, "offset": offset, "descending": descending}
    assert page(store, filters={}, **given) == (153, line[offset : offset + 10])
    some = [(node, at) for node, at in line if "7" in f"n{node}"]
    assert page(store, filters={"search": "7"}, **given) == (len(some), some[offset : offset + 10])


def told(store: Store) -> list[tuple[int | None, int]]:
    with store.reading() as tx:
        return check.uneven(tx, "forums")


def spoil(store: Store, *statements: str) -> None:
    store.write(lambda tx: [tx.raw.execute(statement) for statement in statements]).result(30)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE shelves SET size = size + 1 WHERE above = 0",
        "UPDATE shelves SET before = before + 1 WHERE id = 3",
        "UPDATE shelves SET above = id WHERE id = 2",
        "UPDATE shelves SET parent_id = 7 WHERE above = 0",
        "DELETE FROM shelves WHERE above = 0",
        "DELETE FROM shelves WHERE id = 2",
        "DELETE FROM shelves",
        "UPDATE nodes SET shelf = 0 WHERE id = 40",
        "UPDATE nodes SET shelf = 77 WHERE id = 40",
        "UPDATE nodes SET position = position + 1 WHERE id = 40",
    ],
)
def test_shelves_that_are_damaged_are_found_and_mended(store: Store, order: list[int], damage: str) -> None:
    assert told(store) == []
    spoil(store, damage)
    assert (None, 150) in told(store)

    def mend(tx: Transaction) -> None:
        for parent, _ in check.uneven(tx, "forums"):
            check.renumber(tx, "forums", parent)

    store.write(mend).result(30)
    assert told(store) == []
    with store.reading() as tx:
        assert sorted(positions.children(tx, "forums", None)) == sorted(order)
        assert positions.children(tx, "forums", order[0]) == [151, 152, 153]


def test_shelves_that_agree_are_mended_without_a_change_of_order(store: Store, order: list[int]) -> None:
    spoil(store, "UPDATE shelves SET size = size + 1 WHERE above = 0")
    store.write(lambda tx: check.renumber(tx, "forums", None)).result(30)
    with store.reading() as tx:
        assert positions.children(tx, "forums", None) == order


def test_those_who_come_in_order_fill_the_shelves(store: Store) -> None:
    with_order = store.write(lambda tx: [planted(tx, None, at) for at in range(60)]).result(30)
    with store.reading() as tx:
        leaves = sorted(row[0] for row in tx.raw.execute("SELECT size FROM shelves WHERE level = 0").fetchall())
        assert positions.children(tx, "forums", None) == with_order
    assert len(leaves) == 60 // 3  # one less than fits moves on each time


def test_a_family_that_has_gone_leaves_no_shelves(store: Store, order: list[int]) -> None:
    def leave(tx: Transaction) -> list[Any]:
        house = order[1]
        for at in range(20):
            planted(tx, house, at)
        moves.adopt(tx, "forums", house, order[0], "2026-02")
        for node in order:
            delete(tx, node)
        return list(tx.raw.execute("SELECT id FROM shelves").fetchall())

    assert store.write(leave).result(30) == []


def test_one_who_is_deleted_takes_the_shelves_below_along(store: Store, order: list[int]) -> None:
    def leave(tx: Transaction) -> list[Any]:
        for at in range(20):
            planted(tx, order[1], at)
        for node in order[1:]:
            delete(tx, node)
        return list(tx.raw.execute("SELECT id FROM shelves").fetchall())

    assert store.write(leave).result(30) == []
    assert told(store) == []
