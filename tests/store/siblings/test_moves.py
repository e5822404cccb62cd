"""The tree of siblings against plain lists: inserts, deletes and moves leave the order that the lists have."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.conftest import NewSettings, settings_for
from tests.databases import Databases
from tests.statement_meter import StatementMeter
from trellis.settings import Settings
from trellis.store import siblings, snapshots
from trellis.store.counters import next_numbers
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction
from trellis.store.lists import pages
from trellis.store.lists.pages import Query
from trellis.store.nodes import rows
from trellis.store.nodes.rows import Node
from trellis.store.siblings import btree

OUTER = 1  # a forum at the top level, with as many children as that
INNER = 2  # a child of it
picks = st.integers(0, 300)


def insert(tx: Transaction, parent: int | None, position: int) -> int:
    """Insert a forum at a position; return its id."""
    new = next_numbers(tx, "forums", 1)[0]
    rows.insert(tx, "forums", Node(new, parent, 0, f"N{new}", {}, {}, "2026-01", "2026-01"), position)
    return new


def insert_many(tx: Transaction, parent: int | None, position: int | None, many: int) -> list[tuple[int, int]]:
    """Insert forums side by side; return their ids and positions."""
    new = [Node(number, parent, 0, f"N{number}", {}, {}, "2026-01", "2026-01") for number in next_numbers(tx, "forums", many)]
    return [(node.id, node.position) for node in rows.insert_siblings(tx, "forums", new, position)]


def delete(tx: Transaction, node: int) -> None:
    """Delete a node with all below it."""
    found = rows.find(tx, "forums", node)
    assert found is not None
    rows.delete_subtree(tx, "forums", found)


class Siblings(RuleBasedStateMachine):
    """The children of three parents, and a list of ids for each. Each step is a transaction."""

    new_settings: ClassVar[NewSettings]

    def __init__(self) -> None:
        super().__init__()
        self.database = type(self).new_settings()
        self.store = Store(self.database)
        self.lists: dict[int | None, list[int]] = {None: [], OUTER: [], INNER: []}
        self.told_until = 0  # the last entry of the change journal that was looked at
        self.placed: dict[int, tuple[int | None, int]] = {}  # where the nodes were then

    def teardown(self) -> None:
        self.store.close()
        type(self).new_settings.drop(self.database)

    def write(self, change: Callable[[Transaction], Any]) -> Any:
        return self.store.write(change).result(30)

    @initialize(many=st.integers(0, 90))
    def begin(self, many: int) -> None:
        """Make the two parents, and children of the outer one, each before the others."""
        self.lists[None].append(self.write(lambda tx: insert(tx, None, 0)))
        self.lists[OUTER].append(self.write(lambda tx: insert(tx, OUTER, 0)))
        self.lists[OUTER][:0] = reversed(self.write(lambda tx: [insert(tx, OUTER, 0) for _ in range(many)]))

    @rule(parent=st.sampled_from([None, OUTER, INNER]), place=picks, many=st.integers(1, 30), at_end=st.booleans())
    def insert(self, parent: int | None, place: int, many: int, at_end: bool) -> None:
        order = self.lists[parent]

        def insert_each(tx: Transaction) -> None:
            for _ in range(many):
                at = len(order) if at_end else place % (len(order) + 1)
                order.insert(at, insert(tx, parent, at))

        self.write(insert_each)

    @rule(parent=st.sampled_from([None, OUTER, INNER]), place=st.none() | picks, many=st.integers(1, 60))
    def insert_many(self, parent: int | None, place: int | None, many: int) -> None:
        order = self.lists[parent]
        at = len(order) if place is None else place % (len(order) + 1)
        made = self.write(lambda tx: insert_many(tx, parent, None if place is None else at, many))
        assert [position for _, position in made] == [*range(at, at + many)]
        order[at:at] = [node for node, _ in made]

    @rule(parent=st.sampled_from([None, OUTER, INNER]), place=picks, many=st.integers(1, 30))
    def delete(self, parent: int | None, place: int, many: int) -> None:
        order = self.lists[parent]
        leaves = [node for node in order if node not in {OUTER, INNER}]

        def delete_each(tx: Transaction) -> None:
            for _ in range(min(many, len(leaves))):
                gone = leaves.pop(place % len(leaves))
                delete(tx, gone)
                order.remove(gone)

        self.write(delete_each)

    @rule(old=st.sampled_from([None, OUTER, INNER]), new=st.sampled_from([None, OUTER, INNER]), place=picks, to=picks)
    def move(self, old: int | None, new: int | None, place: int, to: int) -> None:
        leaves = [node for node in self.lists[old] if node not in {OUTER, INNER}]
        if not leaves:
            return
        node = leaves[place % len(leaves)]
        was = self.lists[old].index(node)
        self.lists[old].remove(node)
        at = to % (len(self.lists[new]) + 1)
        self.lists[new].insert(at, node)
        if old == new:
            self.write(lambda tx: siblings.reorder(tx, "forums", old, node, was, at))
        else:
            self.write(lambda tx: siblings.move(tx, "forums", node, old, new, at))

    @rule(
        old=st.sampled_from([None, OUTER, INNER]),
        new=st.sampled_from([None, OUTER, INNER]),
        ticked=st.lists(picks, min_size=1, max_size=40),
        every=st.booleans(),
        to=st.none() | st.lists(picks, min_size=1, max_size=3),
    )
    def move_many(self, old: int | None, new: int | None, ticked: list[int], every: bool, to: list[int] | None) -> None:
        leaves = [node for node in self.lists[old] if node not in {OUTER, INNER}]
        chosen = dict.fromkeys(leaves) if every else dict.fromkeys(leaves[number % len(leaves)] for number in ticked if leaves)
        if not chosen or old == new:
            return
        moving, positions = list(chosen), None
        self.lists[old] = [node for node in self.lists[old] if node not in chosen]
        if to is None:
            self.lists[new] += moving
        else:
            wanted = [to[n % len(to)] % (len(self.lists[new]) + 1) for n in range(len(moving))]
            positions = siblings.positions_after_return(wanted, len(self.lists[new]))
            for node, position in zip(reversed(moving), reversed(wanted), strict=True):
                self.lists[new].insert(position, node)
            assert positions == [self.lists[new].index(node) for node in moving]
        self.write(lambda tx: siblings.move_many(tx, "forums", moving, old, new, "2026-02", positions))

    @rule(
        ticked=st.lists(picks, min_size=1, max_size=40),
        to=st.lists(st.tuples(st.sampled_from([None, OUTER, INNER]), picks), min_size=1, max_size=3),
    )
    def arrange(self, ticked: list[int], to: list[tuple[int | None, int]]) -> None:
        before = {parent: tuple(order) for parent, order in self.lists.items()}
        leaves = [(parent, node) for parent, order in before.items() for node in order if node not in {OUTER, INNER}]
        chosen = dict.fromkeys(leaves[number % len(leaves)] for number in ticked if leaves)
        for n, (old, node) in enumerate(chosen):
            new, at = to[n % len(to)]
            self.lists[old].remove(node)
            self.lists[new].insert(at % (len(self.lists[new]) + 1), node)
        now = {parent: tuple(order) for parent, order in self.lists.items()}
        self.write(lambda tx: siblings.arrange(tx, "forums", before, now))

    @invariant()
    def the_journal_tells_of_every_node_that_is_elsewhere(self) -> None:
        with self.store.reading() as tx:
            placed = {node.id: (node.parent_id, node.position) for node in rows.find_all(tx, "forums")}
            sql = f"SELECT seq, id, parent_id, change FROM node_changes WHERE seq > {self.told_until} ORDER BY seq"  # noqa: S608  # a number
            entries = tx.raw.execute(sql).fetchall()
        told = {id for _, id, _, change in entries if change != "order"}
        orders = {parent for _, _, parent, change in entries if change == "order"}
        elsewhere = {node for node, place in placed.items() if self.placed.get(node, place) != place}
        assert {node for node in elsewhere - told if (placed[node][0] or 0) not in orders} == set()
        self.told_until, self.placed = entries[-1][0] if entries else self.told_until, placed

    @invariant()
    def the_rows_agree_with_the_lists(self) -> None:
        with self.store.reading() as tx:
            stored = {node.id: (node.parent_id, node.position) for node in rows.find_all(tx, "forums")}
            read = {parent: siblings.find_children(tx, "forums", parent) for parent in self.lists}
            together = siblings.find_children_by_parent(tx, "forums", [OUTER, INNER])
            counted = siblings.count_children_by_parent(tx, "forums", [OUTER, INNER])
            wrong = siblings.check(tx, "forums")
            by_position = pages.read_page(tx, "forums", Query({}, "position", limit=10_000))[1]
        assert read == self.lists == together | {None: read[None]}
        assert stored == {node: (parent, at) for parent, order in self.lists.items() for at, node in enumerate(order)}
        assert counted == {parent: len(self.lists[parent]) for parent in (OUTER, INNER) if self.lists[parent]}
        assert wrong == []
        positions = [(at, node) for order in self.lists.values() for at, node in enumerate(order)]
        assert [(node.position, node.id) for node in by_position] == sorted(positions)


def test_any_sequence_of_changes_leaves_the_order_of_the_lists(
    new_settings: NewSettings, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.store.engine.transaction._AT_ONCE", 7)  # so that many rows take several statements
    here = type("Here", (Siblings,), {"new_settings": new_settings})
    bounded = settings(max_examples=settings().max_examples // 8, stateful_step_count=25)
    run_state_machine_as_test(here, settings=bounded)


@pytest.fixture
def store(settings: Settings, small_blocks: None) -> Iterator[Store]:
    store = Store(settings)
    yield store
    store.close()


@pytest.fixture(scope="module")
def _in_order(databases: Databases, _migrated_template: str) -> tuple[str, list[int]]:
    """A database with 150 forums at the top level, of which the first has three children, and their ids in order."""

    def fill(tx: Transaction) -> list[int]:
        line: list[int] = []
        for number in range(150):
            line.insert(at := (number * 37) % (len(line) + 1), insert(tx, None, at))
        for place in range(3):
            insert(tx, line[0], place)
        return line

    url = databases.new(_migrated_template)
    store = Store(settings_for(url))
    with pytest.MonkeyPatch.context() as patch:  # small_blocks, which is a single test's
        patch.setattr(btree, "CAPACITY", 4)
        made: list[int] = store.write(fill).result(30)
    store.close()
    return url, made


@pytest.fixture
def _template(request: pytest.FixtureRequest, _plain_template: str) -> str:
    return str(request.getfixturevalue("_in_order")[0]) if "order" in request.fixturenames else _plain_template


@pytest.fixture
def order(_in_order: tuple[str, list[int]]) -> list[int]:
    """The ids of 150 forums at the top level, in order; the first of them has three children, 151 to 153."""
    return list(_in_order[1])


def page(store: Store, **query: Any) -> tuple[int, list[tuple[int, int]]]:
    with store.reading() as tx:
        total, found = pages.read_page(tx, "forums", Query(sort_by="position", **query))
    return total, [(node.id, node.position) for node in found]


@pytest.mark.parametrize("descending", [False, True])
def test_any_page_of_a_family_is_found_by_position(store: Store, order: list[int], descending: bool) -> None:
    direction = -1 if descending else 1
    line = [(node, at) for at, node in enumerate(order)][::direction]
    some = [(node, at) for node, at in line if "7" in f"n{node}"]
    few = [(151, 0), (152, 1), (153, 2)][::direction]
    for offset in (0, 1, 70, 145, 149, 150, 400):
        given: dict[str, Any] = {"limit": 10, "offset": offset, "descending": descending}
        assert page(store, filters={"top": True}, **given) == (150, line[offset : offset + 10]), offset
        assert page(store, filters={"top": True, "search": "7"}, **given) == (len(some), some[offset : offset + 10]), offset
        assert page(store, filters={"parent": order[0]}, **given) == (3, few[offset : offset + 10]), offset


@pytest.mark.parametrize("descending", [False, True])
def test_any_page_of_all_nodes_is_found_by_position_and_then_by_id(store: Store, order: list[int], descending: bool) -> None:
    places = [(at, node) for at, node in enumerate(order)] + [(at, 151 + at) for at in range(3)]
    places.sort(key=lambda one: (-one[0] if descending else one[0], one[1]))
    line = [(node, at) for at, node in places]
    some = [(node, at) for node, at in line if "7" in f"n{node}"]
    for offset in (0, 1, 70, 145, 152, 153):
        given: dict[str, Any] = {"limit": 10, "offset": offset, "descending": descending}
        assert page(store, filters={}, **given) == (153, line[offset : offset + 10]), offset
        assert page(store, filters={"search": "7"}, **given) == (len(some), some[offset : offset + 10]), offset


def find_wrong(store: Store) -> list[tuple[int | None, int]]:
    with store.reading() as tx:
        return siblings.check(tx, "forums")


def damage_rows(store: Store, *statements: str) -> None:
    store.write(lambda tx: [tx.raw.execute(statement) for statement in statements]).result(30)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sibling_blocks SET size = size + 1 WHERE parent_block = 0",
        "UPDATE sibling_blocks SET start = start + 1 WHERE id = (SELECT max(id) FROM sibling_blocks WHERE level = 0)",
        "UPDATE sibling_blocks SET parent_block = id WHERE id = (SELECT max(id) FROM sibling_blocks WHERE level = 0)",
        "UPDATE sibling_blocks SET parent_id = 7 WHERE parent_block = 0",
        "DELETE FROM sibling_blocks WHERE parent_block = 0",
        "DELETE FROM sibling_blocks WHERE id = (SELECT max(id) FROM sibling_blocks WHERE level = 0)",
        "DELETE FROM sibling_blocks",
        "UPDATE nodes SET block = 0 WHERE id = 40",
        "UPDATE nodes SET block = 77 WHERE id = 40",
        "UPDATE nodes SET block_offset = block_offset + 1 WHERE id = 40",
    ],
)
def test_damaged_blocks_are_found_and_repaired(store: Store, order: list[int], damage: str) -> None:
    assert find_wrong(store) == []
    damage_rows(store, damage)
    assert (None, 150) in find_wrong(store)

    def repair(tx: Transaction) -> None:
        for parent, _ in siblings.check(tx, "forums"):
            siblings.repair(tx, "forums", parent)

    store.write(repair).result(30)
    assert find_wrong(store) == []
    with store.reading() as tx:
        assert sorted(siblings.find_children(tx, "forums", None)) == sorted(order)
        assert siblings.find_children(tx, "forums", order[0]) == [151, 152, 153]


def test_repair_keeps_the_order_where_that_is_intact(store: Store, order: list[int]) -> None:
    damage_rows(store, "UPDATE sibling_blocks SET size = size + 1 WHERE parent_block = 0")
    store.write(lambda tx: siblings.repair(tx, "forums", None)).result(30)
    with store.reading() as tx:
        assert siblings.find_children(tx, "forums", None) == order


def test_siblings_that_are_appended_fill_their_blocks(store: Store) -> None:
    appended = store.write(lambda tx: [insert(tx, None, at) for at in range(60)]).result(30)
    with store.reading() as tx:
        leaves = sorted(row[0] for row in tx.raw.execute("SELECT size FROM sibling_blocks WHERE level = 0").fetchall())
        assert siblings.find_children(tx, "forums", None) == appended
    assert len(leaves) == 60 // 3  # a full block keeps all entries but the last


def test_children_that_have_moved_or_been_deleted_leave_no_blocks(store: Store, order: list[int]) -> None:
    def work(tx: Transaction) -> list[Any]:
        parent = order[1]
        for at in range(20):
            insert(tx, parent, at)
        siblings.move_many(tx, "forums", siblings.find_children(tx, "forums", parent), parent, order[0], "2026-02")
        for node in order:
            delete(tx, node)
        return list(tx.raw.execute("SELECT id FROM sibling_blocks").fetchall())

    assert store.write(work).result(30) == []


def test_however_many_children_there_are_all_leave_their_blocks_at_once(store: Store, order: list[int]) -> None:
    def statements(tx: Transaction, count: int, parent: int, to: int) -> int:
        children = [node for node, _ in insert_many(tx, parent, None, count)]
        with StatementMeter() as meter:
            siblings.move_many(tx, "forums", children, parent, to, "2026-02")
        assert siblings.find_children(tx, "forums", to) == children
        return meter.count

    def work(tx: Transaction) -> tuple[int, int]:
        return statements(tx, 20, order[2], order[3]), statements(tx, 60, order[4], order[5])

    few, many = store.write(work).result(30)
    assert few == many
    assert find_wrong(store) == []


@pytest.mark.parametrize("gone", [slice(1, 149), slice(1, 20), slice(40, 110), slice(1, 149, 3), slice(1, None)])
def test_many_that_are_deleted_together_leave_the_others_in_order(store: Store, order: list[int], gone: slice) -> None:
    def work(tx: Transaction) -> None:
        found = rows.find_by_ids(tx, "forums", order[gone])
        snapshots.delete_leaves(tx, "forums", [found[node] for node in order[gone]])

    store.write(work).result(30)
    left = [node for node in order if node not in order[gone]]
    assert page(store, filters={"top": True}, limit=200)[1] == [(node, at) for at, node in enumerate(left)]
    assert find_wrong(store) == []


def test_a_deleted_node_leaves_no_blocks_of_its_children(store: Store, order: list[int]) -> None:
    def work(tx: Transaction) -> list[Any]:
        for at in range(20):
            insert(tx, order[1], at)
        for node in order[1:]:
            delete(tx, node)
        return list(tx.raw.execute("SELECT id FROM sibling_blocks").fetchall())

    assert store.write(work).result(30) == []
    assert find_wrong(store) == []
