"""Pages of nodes: every filter, order and page is what a plain filter over all nodes says, whatever was changed before."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from tests.statement_meter import StatementMeter
from tests.store.nodes.test_rows import node, read, store, write
from trellis.store import counters, siblings, tables
from trellis.store.counters import next_numbers
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Statement, Transaction
from trellis.store.lists import inside, journal, pages, results, search, statements
from trellis.store.lists.pages import NodePart, Query
from trellis.store.nodes import deleted_ids, rows
from trellis.store.nodes.rows import Node, fold_name

__all__ = ["store"]


_FOUND: tuple[tuple[dict[str, Any], list[int]], ...] = (
    ({}, [1, 2, 3, 4, 5, 6]),
    ({"ids": [6, 2, 99]}, [2, 6]),
    ({"ids": []}, []),
    ({"parent": 1}, [2, 3]),
    ({"parent": 99}, []),
    ({"top": True}, [1, 6]),
    ({"search": "o"}, [1, 2, 4]),
    ({"search": "ive", "parent": 2}, [5]),
    ({"updatedSince": "2026-02"}, [1, 2, 3, 4, 5, 6]),
    ({"updatedSince": "2026-03"}, []),
    ({"top": True, "ids": [2, 6]}, [6]),
    ({"under": 1}, [2, 3, 4, 5]),
    ({"under": 1, "ids": [1, 5, 6]}, [5]),
    ({"under": 1, "parent": 2}, [4, 5]),
    ({"under": 2, "search": "ive"}, [5]),
    ({"under": 6}, []),
    ({"under": 99}, []),
)


def test_a_page_is_filtered_and_counted(store: Store) -> None:
    with store.reading() as tx:
        for filters, ids in _FOUND:
            total, found = pages.read_page(tx, "forums", Query(filters))
            assert (total, [one.id for one in found]) == (len(ids), ids), filters
            total, found = pages.read_page(tx, "forums", Query(filters, descending=True, limit=2, offset=1))
            assert (total, [one.id for one in found]) == (len(ids), ids[::-1][1:3]), filters


def explain(tx: Transaction, statement: Statement) -> list[str]:
    """Return the steps in which SQLite runs a statement."""
    sql, _ = statement.compile(tx)
    return [row[3] for row in tx.raw.execute(f"EXPLAIN QUERY PLAN {sql}", dict.fromkeys(re.findall(r":(\w+)", sql)))]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("names", [("type",), ("type__one_of",), ("updatedSince",), ("parent",), ("search", "type__one_of")])
def test_changed_nodes_are_looked_up_one_by_one(store: Store, names: tuple[str, ...]) -> None:
    with store.reading() as tx:
        steps = [step for step in explain(tx, journal._added(names)) if "SEARCH nodes " in step]
    assert steps == ["SEARCH nodes USING INDEX sqlite_autoindex_nodes_1 (kind=? AND id=?)"]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_page_by_position_reads_of_each_block_only_what_is_in_it(store: Store) -> None:
    with store.reading() as tx:
        steps = explain(tx, statements.page_by_position(statements.ONLY_IDS, (), descending=False))
    blocks = [step.strip() for before, step in pairwise(steps) if before.startswith("SCAN down") and " nodes " in step]
    assert blocks == ["SEARCH nodes USING INDEX nodes_children (kind=? AND parent_id=? AND block=? AND block_offset<?)"] * 2


def test_a_page_of_a_kind_that_was_never_used_is_empty(store: Store) -> None:
    assert read(store, lambda tx: pages.read_page(tx, "calendars", Query({}))) == (0, [])


# --- many rows, few of them looked at at a time -------------------------------------------------------------------

SORTS: dict[str, Callable[[Node], Any]] = {
    "id": lambda one: one.id,
    "name": lambda one: fold_name(one.name),
    "createdAt": lambda one: one.created_at,
    "updatedAt": lambda one: one.updated_at,
}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every way to a page taken with few rows: ranges of four ids, anchors three rows apart."""
    small: dict[Any, dict[str, Any]] = {
        deleted_ids: {"_SHIFTS": (4, 2)},
        pages: {
            "_MAX_SKIPPED": 2,
            "_ANCHOR_DISTANCE": 3,
            "_ALWAYS_SORTED": 2,
            "_MAX_CANDIDATES": 8,
            "MAX_IDS": 4,
            "_MAX_ORDERED": 40,
        },
        inside: {"_MAX_PLACED": 20, "_PROBES": 3},
        results: {"MAX_IDS": 4},
        journal: {"_MAX_APPLIED": 20, "KEPT": 30},
        search: {"_MAX_PROBED": 3, "_RARE": 1},
    }
    for module, values in small.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


def plain(every: list[Node], query: Query) -> tuple[int, list[int]]:
    """The answer to a query, in the plainest way."""
    passes: dict[str, Callable[[Node, Any], bool]] = {
        "search": lambda one, text: text in fold_name(one.name),
        "updatedSince": lambda one, moment: one.updated_at >= moment,
        "top": lambda one, _: one.parent_id is None,
        "type": lambda one, value: one.fields.get("type") == value,
        "ids": lambda one, ids: one.id in ids,
    }
    parents = {one.id: one.parent_id for one in every}

    def is_inside(node: int | None) -> bool:
        return node is not None and (query.part is None or node in query.part.roots or is_inside(parents[node]))

    def is_below(node: int, root: int) -> bool:
        parent = parents[node]
        return parent is not None and (parent == root or is_below(parent, root))

    passes["under"] = lambda one, root: is_below(one.id, root)
    found = [one for one in every if is_inside(one.id) and all(passes[name](one, value) for name, value in query.filters.items())]
    found.sort(key=lambda one: one.id)
    found.sort(key=SORTS[query.sort_by], reverse=query.descending)
    return len(found), [one.id for one in found][query.offset : query.offset + query.limit]


QUERIES = [
    Query(filters, sort_by, descending, limit, offset)  # type: ignore[arg-type]  # the orders are those of SORTS
    for filters in (
        {},
        {"type": "a"},
        {"type": "b"},
        {"updatedSince": "2026-02-2"},
        {"search": "x"},
        {"search": "lorem"},
        {"search": "rare"},
        {"search": "lorem", "type": "b"},
        {"top": True, "updatedSince": "2026-02-1"},
        {"ids": list(range(3, 40)), "search": "o"},
    )
    for sort_by in SORTS
    for descending in (False, True)
    for limit, offset in ((5, 0), (3, 7), (4, 31), (2, 20), (5, 55), (30, 1))
]
UNDER = [replace(query, filters={**query.filters, "under": 1}) for query in QUERIES]
PARTS = [replace(query, part=NodePart((2, 6), is_tree=True)) for query in QUERIES if query.filters.keys() <= {"type"}]


def test_every_way_to_a_page_leads_to_the_same_rows(store: Store, narrow: None) -> None:
    """Rows come, go, come back, move and change between the rounds, and the results that were kept are brought up to date."""
    chance = random.Random(11)  # noqa: S311  # a sequence to repeat, not a secret
    write(store, recount_deleted_ids)
    for _ in range(4):
        for change in (grow, thin, regroup, rename):
            write(store, partial(change, chance=chance))
            if chance.random() < 0.5:
                write(store, lambda tx: search.update_search_index(tx, 7))
            if chance.random() < 0.3:
                write(store, search.trim_journal)
            with store.reading() as tx:
                every = rows.find_all(tx, "forums")
                for query in (*chance.sample(QUERIES, 24), *chance.sample(UNDER, 12), *chance.sample(PARTS, 12)):
                    total, found = pages.read_page(tx, "forums", query)
                    assert (total, [one.id for one in found]) == plain(every, query), query
                assert deleted_ids.check(tx, "forums") == search.check_search_index(tx) == 0


def recount_deleted_ids(tx: Transaction) -> None:
    """Count the deleted ids in ranges of the size that `narrow` gives them."""
    deleted_ids.repair(tx, "forums")


def grow(tx: Transaction, chance: random.Random) -> None:
    for _ in range(15):
        id, day = next_numbers(tx, "forums", 1)[0], chance.randint(10, 28)
        name = chance.choice(["Lorem", "ipsum", "lorem RARE", "x", "Straße"]) + chance.choice(["", " x", f" {id}"])
        made = node(id, chance.choice([None, None, 2, 6]), id, name=name, fields={"type": chance.choice("aaaaab")})
        made.created_at, made.updated_at = f"2026-01-{chance.randint(10, 12)}", f"2026-02-{day}"
        rows.insert(tx, "forums", made)


def thin(tx: Transaction, chance: random.Random) -> None:
    leaves = [one for one in rows.find_all(tx, "forums") if one.id > 6]
    for one in chance.sample(leaves, 4):
        rows.delete_subtree(tx, "forums", one)
        if chance.random() < 0.3:  # and back again, as an undo does
            rows.insert(tx, "forums", one)
            counters.add_to_total(tx, "forums", 1)
            deleted_ids.record_restored(tx, "forums", [one.id])


def regroup(tx: Transaction, chance: random.Random) -> None:
    every = rows.find_all(tx, "forums")
    for one in (*chance.sample([one for one in every if one.id > 6], 3), every[1]):
        siblings.move(tx, "forums", one.id, one.parent_id, chance.choice([None, 1, 6] if one.id == 2 else [None, 2, 6]), None)


def rename(tx: Transaction, chance: random.Random) -> None:
    for one in chance.sample(rows.find_all(tx, "forums"), 5):
        one.name = chance.choice(["Lorem again", "rare", "dolor x"])
        one.updated_at = f"2026-02-{chance.randint(10, 28)}"
        one.fields = one.fields | {"type": chance.choice("ab")}
        rows.update(tx, "forums", one)


# --- what was remembered ------------------------------------------------------------------------------------------


def test_what_is_remembered_is_known_to_be_too_old(store: Store, narrow: None) -> None:
    """More has changed than is worth looking at, or the journal reaches back less far: then it is counted anew."""
    query = Query({"search": "o"})
    for ids in (range(7, 10), range(10, 40), range(40, 45)):
        before = read(store, lambda tx: pages.read_page(tx, "forums", query))[0]

        def plant(tx: Transaction, ids: range = ids) -> None:
            for id in ids:
                rows.insert(tx, "forums", node(id, None, id, name="o"))

        write(store, plant)
        assert read(store, lambda tx: pages.read_page(tx, "forums", query))[0] == before + len(ids)
    assert write(store, lambda tx: journal.trim(tx, 10**6)) > 0
    assert read(store, lambda tx: pages.read_page(tx, "forums", query))[0] == 3 + 38


def test_a_snapshot_that_was_opened_before_sees_what_it_saw(store: Store) -> None:
    query = Query({"search": "o"})
    with store.reading() as tx:
        early = pages.read_page(tx, "forums", query)[0]
        write(store, lambda other: rows.insert(other, "forums", node(7, None, 2, name="Otto")))
        later = Store(store.settings)
        later._cache = store._cache
        assert read(later, lambda other: pages.read_page(other, "forums", query))[0] == early + 1
        assert pages.read_page(tx, "forums", query)[0] == early
        later.close()
    assert read(store, lambda other: pages.read_page(other, "forums", query))[0] == early + 1


def test_the_results_of_the_latest_queries_are_kept(store: Store) -> None:
    for number in range(200):
        read(store, partial(pages.read_page, kind="forums", query=Query({"search": f"{number}"})))
    assert len(store._cache._entries) == 128


# --- the search index ----------------------------------------------------------------------------------------------

# Folding that changes lengths, what full-text search and LIKE read as their own, letters of two and of four bytes.
HARD = [
    "Straße",
    "STRASSE",
    "İstanbul",
    "100% \\_\"'*",
    "e\u0301t\u00e9",
    "日本語フォーラム",
    "a" * 255,
    "😀😀😀😀",
    "ab",
    "NEAR(a b)",
    "--",
    "ΣΊΣΥΦΟΣ",
]


@pytest.mark.parametrize("caught_up", [False, True])
def test_a_search_finds_exactly_the_names_that_contain_the_text(store: Store, caught_up: bool) -> None:
    def plant(tx: Transaction) -> None:
        for id, name in enumerate(HARD * 2, start=7):
            rows.insert(tx, "forums", node(id, None, id, name=name))
        if caught_up:
            search.update_search_index(tx)

    write(store, plant)
    with store.reading() as tx:
        every = rows.find_all(tx, "forums")
        assert search.is_search_index_behind(tx) is not caught_up
        for name in HARD:
            folded = fold_name(name)
            for text in {folded, folded[:3], folded[-3:], folded[1:4], folded[:2], f"{folded}x", '"*', "%", "_"} - {""}:
                query = Query({"search": text}, limit=100)
                total, found = pages.read_page(tx, "forums", query)
                assert (total, [one.id for one in found]) == plain(every, query), text


def test_without_an_index_every_name_is_compared(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where SQLite was built without FTS5; where it is there again, the index is rebuilt."""
    monkeypatch.setattr(journal, "KEPT", 1)
    with monkeypatch.context() as patched:
        patched.setattr(search, "is_usable", lambda _: False)
        assert read(store, lambda tx: search.find_candidates(tx, "forums", "three", 100)) is None
        assert read(store, lambda tx: pages.read_page(tx, "forums", Query({"search": "three"})))[0] == 1
        assert write(store, search.update_search_index) == 0
        assert write(store, search.trim_journal) > 0
    write(store, lambda tx: rows.insert(tx, "forums", node(7, None, 2, name="Seven")))
    assert read(store, search.is_search_index_behind)
    assert read(store, lambda tx: pages.read_page(tx, "forums", Query({"search": "four"}))[0]) == 1
    write(store, search.update_search_index)
    assert not read(store, search.is_search_index_behind)
    assert read(store, lambda tx: search.find_candidates(tx, "forums", "three", 100)) == [3]


def test_the_check_sees_that_the_index_lacks_a_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store, search.update_search_index)
    assert read(store, search.check_search_index) == 0
    table, mine = tables.search_names, tables.search_names.c.kind == "forums"
    write(
        store,
        lambda tx: tx.connection.execute(table.update().where(mine, table.c.id == 3).values(name_key="Two")),
    )
    write(store, lambda tx: tx.connection.execute(table.delete().where(mine, table.c.id == 4)))
    write(
        store,
        lambda tx: tx.connection.execute(table.update().where(mine, table.c.id == 5).values(id=99)),
    )
    assert read(store, search.check_search_index) == 4
    with StatementMeter() as few:
        write(store, search.rebuild_search_index)
    assert read(store, search.check_search_index) == 0
    monkeypatch.setattr(search, "_AT_ONCE", 2)
    with StatementMeter() as many:
        write(store, search.rebuild_search_index)
    assert many.count > few.count  # a statement for each batch
    assert read(store, search.check_search_index) == 0
    assert read(store, lambda tx: search.find_candidates(tx, "forums", "three", 100)) == [3]


def test_what_a_damaged_index_has_found_is_not_kept_after_a_repair(store: Store) -> None:
    def search_three() -> int:
        return int(read(store, lambda tx: pages.read_page(tx, "forums", Query({"search": "three"}))[0]))

    write(store, search.update_search_index)
    mine = (tables.search_names.c.kind == "forums", tables.search_names.c.id == 3)
    write(store, lambda tx: tx.connection.execute(tables.search_names.delete().where(*mine)))
    assert search_three() == 0
    write(store, search.rebuild_search_index)
    write(store, journal.note_everything)
    assert search_three() == 1


def test_the_check_sees_that_sqlite_has_lost_what_it_has_indexed(store: Store) -> None:
    write(store, search.update_search_index)
    if not store.reads_inline:
        return
    write(store, lambda tx: tx.raw.execute("INSERT INTO search_trigrams (search_trigrams) VALUES ('delete-all')"))
    assert read(store, search.check_search_index) > 0
    write(store, search.rebuild_search_index)
    assert read(store, search.check_search_index) == 0
