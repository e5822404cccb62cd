"""The rows of nodes, function by function, on a small tree."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from trellis.settings import Settings
from trellis.store import siblings
from trellis.store.counters import next_number, next_numbers
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Statement, Transaction
from trellis.store.lists import pages
from trellis.store.lists.pages import Query
from trellis.store.nodes import leads_inside, located, rows, trees
from trellis.store.nodes.rows import Node
from trellis.store.siblings.btree import CAPACITY
from trellis.store.tables import nodes

# id → (parent, place). 1 and 6 stand at the top; 2, 3 under 1; 4, 5 under 2.
TREE: dict[int, tuple[int | None, int]] = {1: (None, 0), 2: (1, 0), 3: (1, 1), 4: (2, 0), 5: (2, 1), 6: (None, 1)}
NAMES = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "five", 6: "Six"}
BIG = 2**63 - 1
LEADING_UP = (
    located._FIND_WITH_SOME_ABOVE,
    located._FIND_EXTERNAL_WITH_SOME_ABOVE,
    located._FIND_WITH_PATH,
    rows._ANCESTORS,
    Statement(
        sa.select(nodes.c.id).where(nodes.c.kind == sa.bindparam("kind"), leads_inside(nodes.c.kind, nodes.c.id, nodes.c.parent_id))
    ),
)


def node(id: int, parent: int | None, position: int, **values: Any) -> Node:
    made = Node(
        id,
        parent,
        position,
        NAMES.get(id, f"N{id}"),
        {"minContent": 3},
        {"view": "*", "add": [3, 4]},
        f"2026-01-0{id % 9}",
        "2026-02",
    )
    return replace(made, **values)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store(settings)

    def fill(tx: Transaction) -> None:
        for parent, position in TREE.values():
            rows.insert(tx, "forums", node(next_numbers(tx, "forums", 1)[0], parent, position))
        rows.insert(tx, "blogs", node(next_numbers(tx, "blogs", 1)[0], None, 0, name="A blog", permissions={}))

    store.write(fill).result(30)
    yield store
    store.close()


def read(store: Store, work: Callable[[Transaction], Any]) -> Any:
    with store.reading() as tx:
        return work(tx)


def write(store: Store, work: Callable[[Transaction], Any]) -> Any:
    return store.write(work).result(30)


def find_positions(store: Store) -> dict[int, tuple[int | None, int]]:
    return {found.id: (found.parent_id, found.position) for found in read(store, lambda tx: rows.find_all(tx, "forums"))}


def test_a_node_is_found_by_kind_and_id_as_it_was_written(store: Store) -> None:
    assert read(store, lambda tx: rows.find(tx, "forums", 4)) == node(4, 2, 0)
    assert read(store, lambda tx: rows.find(tx, "forums", 7)) is None
    assert read(store, lambda tx: rows.find(tx, "calendars", 4)) is None
    assert read(store, lambda tx: rows.find(tx, "forums", BIG)) is None


def test_a_kind_that_has_grown_is_read_by_the_primary_key(store: Store) -> None:
    if store.reads_inline:
        return  # SQLite chooses its plans once, without looking at what is there

    def explain(tx: Transaction) -> str:
        sql, own = located._FIND_WITH_SOME_ABOVE.compile(tx)
        return "\n".join(row[0] for row in tx.raw.execute(f"EXPLAIN {sql}", own | {"kind": "calendars", "id": 300}))

    def explain_many(tx: Transaction) -> str:
        sql, own = rows._BY_IDS.compile(tx)
        given = {"kind": "groups", "ids": list(range(100, 150))}
        return "\n".join(row[0] for row in tx.raw.execute(f"EXPLAIN {sql}", own | given))

    def grow(kind: str, many: int) -> None:
        new = [node(number, None, 0) for number in range(100, 100 + many)]
        write(store, lambda tx: rows.insert_siblings(tx, kind, new))

    grow("groups", 500)
    write(store, lambda tx: tx.raw.execute("ANALYZE").rowcount)
    grow("calendars", 500)
    plan = read(store, explain)
    assert plan.count("nodes_pkey") == plan.count("Scan using nodes") == 5, plan
    assert "Filter" not in plan, plan
    plan = read(store, explain_many)
    assert plan.count("nodes_pkey") == plan.count("Scan using nodes") == 1, plan
    assert "Filter" not in plan, plan


@pytest.mark.parametrize("statement", LEADING_UP, ids=("some above", "external id", "path", "ancestors", "inside"))
def test_what_is_above_is_looked_up_and_not_compared_with_all_of_the_kind(store: Store, statement: Statement) -> None:
    """PostgreSQL read all nodes of a kind for each level while there were no more than some thousand, even after ANALYZE."""
    if store.reads_inline:
        return  # SQLite joins as a statement says
    chain = [node(id, id - 1 if id > 100 else 4, 0, external_id=str(id)) for id in range(100, 300)]

    def explain(tx: Transaction) -> str:
        sql, own = statement.compile(tx)
        given = {"kind": "forums", "id": "299" if statement is located._FIND_EXTERNAL_WITH_SOME_ABOVE else 299}
        explained = tx.raw.execute(f"EXPLAIN (ANALYZE, TIMING OFF) {sql}", own | given | {"ids": [299], "inside": [4]})
        return "\n".join(row[0] for row in explained)

    write(store, lambda tx: rows.insert_descendants(tx, "forums", [chain]))
    plan = read(store, explain)
    assert "Removed by Join Filter" not in plan, plan
    write(store, lambda tx: tx.raw.execute("ANALYZE nodes").rowcount)
    plan = read(store, explain)
    assert "Removed by Join Filter" not in plan, plan


def test_a_node_is_found_with_the_names_above_it(store: Store) -> None:
    def paths(tx: Transaction) -> list[str | None]:
        found = [located.find_with_path(tx, "forums", id) for id in (4, 2, 1, 7)]
        return [one[1] if one else None for one in found]

    assert read(store, paths) == ["One > Two > ", "One > ", "", None]


def test_a_node_is_found_with_what_is_above_it_at_any_depth(store: Store) -> None:
    line = [1, 2, 4, *range(7, 15)]  # 4 is there, with two above it

    def deepen(tx: Transaction) -> None:
        for parent, number in pairwise(line[2:]):
            rows.insert(tx, "forums", node(number, parent, 0))

    def find_all(tx: Transaction) -> list[tuple[str, tuple[int, ...]] | None]:
        found = [located.find_with_path(tx, "forums", number) for number in line]
        return [
            (one.above, one.line) if one is not None and one.node.id == number else None
            for one, number in zip(found, line, strict=True)
        ]

    write(store, deepen)
    above = [line[:depth] for depth in range(len(line))]
    assert read(store, find_all) == [("".join(f"{NAMES.get(one, f'N{one}')} > " for one in those), tuple(those)) for those in above]


def test_existing_ids_are_told_from_others(store: Store) -> None:
    assert read(store, lambda tx: rows.find_existing(tx, "forums", [3, 3, 6, 7, BIG])) == {3, 6}
    assert read(store, lambda tx: rows.find_existing(tx, "forums", [])) == set()


def test_lines_lead_to_the_top(store: Store) -> None:
    assert read(store, lambda tx: rows.find_ancestors(tx, "forums", [4, 3])) == {
        4: (2, "Four"),
        2: (1, "Two"),
        1: (None, "One"),
        3: (1, "Three"),
    }
    assert read(store, lambda tx: rows.find_ancestors(tx, "forums", [])) == {}
    assert read(store, lambda tx: rows.find_ancestors(tx, "forums", [7])) == {}


def test_descendants_come_nearest_first_and_children_in_their_order(store: Store) -> None:
    assert read(store, lambda tx: rows.find_descendants(tx, "forums", 1)) == [2, 3, 4, 5]
    assert read(store, lambda tx: rows.find_descendants(tx, "forums", 6)) == []
    assert read(store, lambda tx: siblings.find_children(tx, "forums", 2)) == [4, 5]
    write(store, lambda tx: siblings.reorder(tx, "forums", 2, 4, 0, 9))
    assert read(store, lambda tx: siblings.find_children(tx, "forums", 2)) == [5, 4]


@pytest.mark.parametrize(("root", "number", "left"), [(1, 5, {6}), (2, 3, {1, 3, 6}), (6, 1, {1, 2, 3, 4, 5})])
def test_a_subtree_is_deleted_counted_and_of_one_kind_only(store: Store, root: int, number: int, left: set[int]) -> None:
    assert write(store, lambda tx: rows.delete_subtree(tx, "forums", node(root, *TREE[root]))) == number
    assert set(find_positions(store)) == left
    assert read(store, lambda tx: pages.read_page(tx, "forums", Query({})))[0] == len(left)
    assert read(store, lambda tx: rows.find(tx, "blogs", 1)) is not None


@pytest.mark.parametrize(("parent", "count"), [(None, 2), (1, 2), (2, 2), (3, 0), (7, 0)])
def test_children_are_counted(store: Store, parent: int | None, count: int) -> None:
    assert read(store, lambda tx: siblings.count_children(tx, "forums", parent)) == count


@pytest.mark.parametrize(
    ("parent", "child", "position"), [(None, 6, 1), (1, 3, 1), (1, 6, None), (None, 3, None), (2, 5, 1), (1, 7, None)]
)
def test_a_position_is_found_among_the_children_of_one_parent(
    store: Store, parent: int | None, child: int, position: int | None
) -> None:
    assert read(store, lambda tx: siblings.find_position(tx, "forums", parent, child)) == position


def test_siblings_are_renumbered_when_one_comes_or_goes(store: Store) -> None:
    assert write(store, lambda tx: siblings.move(tx, "forums", 2, 1, None, 1)) == 1
    assert find_positions(store) == TREE | {2: (None, 1), 6: (None, 2), 3: (1, 0)}
    assert write(store, lambda tx: siblings.move(tx, "forums", 3, 1, None, 99)) == 3
    assert write(store, lambda tx: siblings.reorder(tx, "forums", None, 3, 3, 0)) == 0
    assert find_positions(store) == TREE | {3: (None, 0), 1: (None, 1), 2: (None, 2), 6: (None, 3)}
    assert write(store, lambda tx: siblings.reorder(tx, "forums", None, 3, 0, None)) == 3
    write(store, lambda tx: rows.delete_subtree(tx, "forums", node(1, None, 0)))
    assert find_positions(store) == {2: (None, 0), 4: (2, 0), 5: (2, 1), 6: (None, 1), 3: (None, 2)}


def test_children_that_move_together_come_behind_the_others_in_order(store: Store) -> None:
    write(store, lambda tx: siblings.move_many(tx, "forums", [4, 5], 2, 1, "2026-03"))
    assert find_positions(store) == TREE | {4: (1, 2), 5: (1, 3)}
    changed = {found.id for found in read(store, lambda tx: rows.find_all(tx, "forums")) if found.updated_at == "2026-03"}
    assert changed == {4, 5}


def test_numbers_count_up_in_each_sequence_and_come_back_when_a_write_fails(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        next_number(tx, "tickets")
        raise LookupError

    assert write(store, lambda tx: [next_number(tx, name) for name in ("tickets", "others", "tickets")]) == [1, 1, 2]
    with pytest.raises(LookupError):
        write(store, fail)
    assert write(store, lambda tx: next_number(tx, "tickets")) == 3


def test_many_numbers_are_taken_at_once_and_counted(store: Store) -> None:
    assert write(
        store, lambda tx: [next_numbers(tx, "tickets", 3), next_number(tx, "tickets"), next_numbers(tx, "tickets", 2)]
    ) == [
        range(1, 4),
        4,
        range(5, 7),
    ]


def test_many_children_are_inserted_below_a_new_node(store: Store) -> None:
    def insert(tx: Transaction) -> None:
        numbers = next_numbers(tx, "forums", 1 + CAPACITY + 2)
        rows.insert(tx, "forums", node(numbers[0], 3, 0))
        children = [node(number, numbers[0], position) for position, number in enumerate(numbers[1:])]
        rows.insert_descendants(tx, "forums", (children[:5], children[5:]))

    write(store, insert)
    below = read(store, lambda tx: trees.find_outline(tx, "forums", 7))
    assert below == [(8 + position, 7, position) for position in range(CAPACITY + 2)]
    found = read(store, lambda tx: rows.find_by_ids(tx, "forums", [8, 10, 99]))
    assert found == {8: node(8, 7, 0), 10: node(10, 7, 2)}
    assert read(store, lambda tx: siblings.count_children(tx, "forums", 7)) == CAPACITY + 2
    assert read(store, lambda tx: siblings.check(tx, "forums")) == []


def test_an_outline_has_parents_before_children_and_siblings_in_order(store: Store) -> None:
    assert read(store, lambda tx: trees.find_outline(tx, "forums", 1)) == [(2, 1, 0), (3, 1, 1), (4, 2, 0), (5, 2, 1)]


def test_an_update_leaves_the_place_and_the_time_of_making(store: Store) -> None:
    new = node(4, None, 99, name="Fòur", fields={"a": [1, {"b": None}]}, permissions={}, created_at="x", updated_at="2026-04")
    write(store, lambda tx: rows.update(tx, "forums", new))
    found = read(store, lambda tx: rows.find(tx, "forums", 4))
    assert found == replace(new, parent_id=2, position=0, created_at=node(4, 2, 0).created_at)
    assert read(store, lambda tx: pages.read_page(tx, "forums", Query({"search": "fòu"})))[0] == 1


def test_a_parent_must_exist_and_a_node_with_children_cannot_vanish(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        write(store, lambda tx: rows.insert(tx, "forums", node(7, 99, 0)))
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        write(store, lambda tx: rows.insert(tx, "blogs", node(7, 6, 0)))
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        write(store, lambda tx: rows.insert(tx, "forums", node(6, None, 9)))
    assert find_positions(store) == TREE


@pytest.mark.parametrize(
    ("group", "found"), [(4, [("blogs", 1), ("forums", 2)]), (77, [("forums", 3)]), (3, [("forums", 3)]), (44, [])]
)
def test_nodes_that_mention_a_number_are_found(store: Store, group: int, found: list[tuple[str, int]]) -> None:
    def mention(tx: Transaction) -> None:
        for id, (parent, place) in TREE.items():
            rows.update(tx, "forums", node(id, parent, place, permissions={"view": "4", "add": []}, fields={"note": "4 44"}))
        rows.update(tx, "forums", node(2, 1, 0, permissions={"view": "*", "add": [2, 4]}, fields={}))
        rows.update(tx, "forums", node(3, 1, 1, permissions={"view": [77], "add": [4000]}, fields={"minContent": 3}))
        rows.update(tx, "blogs", node(1, None, 0, permissions={}, fields={"groups": [4]}))

    write(store, mention)
    assert read(store, lambda tx: rows.list_mentioning_group(tx, group)) == found


def test_names_are_folded_for_sorting_and_searching() -> None:
    assert rows.fold_name("STRASSE") == rows.fold_name("Straße")
