"""What events say of records: the newest of each, found without going through the others."""

from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.core.gate import Gate
from trellis.store.engine import Transaction
from trellis.store.events import find_last_change, find_last_changes, records


def change_all(run: Run, ids: list[int], times: int) -> None:
    for time in range(times):
        run("core.batch", operations=[{"operation": "forums.update", "id": one, "body": {"name": f"Named {time}"}} for one in ids])


def count_rows(plan: dict[str, Any]) -> float:
    """Count the rows that PostgreSQL has gone through for a part of a statement, and for the parts of that."""
    own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Join Filter", 0)
    return float(own * plan["Actual Loops"] + sum(map(count_rows, plan.get("Plans", ()))))


def test_the_newest_event_of_each_is_found(gate: Gate, run: Run) -> None:
    ids = [run("forums.create", name="Forum")["id"] for _ in range(5)]
    change_all(run, ids[:3], 2)
    gone = run("forums.create", name="Gone")["id"]
    run("forums.delete", gone)
    last = {one: run("events.list", resourceId=one, resource="forums", order="newest", limit=1)["results"][0]["seq"] for one in ids}
    with gate.store.reading() as tx:
        assert {node: one.event for node, one in find_last_changes(tx, "forums", [*ids, gone, 999], 1000).items()} == last
        before = find_last_changes(tx, "forums", ids, last[ids[0]])
        assert before == {node: one for node in ids if (one := find_last_change(tx, "forums", node, last[ids[0]]))}
        assert find_last_changes(tx, "forums", ids, 1) == {}


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_postgresql_finds_them_without_going_through_all_events(gate: Gate, run: Run) -> None:
    """SQLite does not either: that is in test_work.py."""
    ids = [run("forums.create", name="Forum")["id"] for _ in range(50)]

    def work(tx: Transaction) -> float:
        sql, own = records._LAST_OF_NODES.compile(tx)
        given = {**own, "kind": "forums", "ids": tx.id_list(ids), "before": 10**6}
        return count_rows(tx.raw.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", given).fetchone()[0][0]["Plan"])

    change_all(run, ids, 2)
    with gate.store.reading() as tx:
        few = work(tx)
    change_all(run, ids, 14)
    with gate.store.reading() as tx:
        many = work(tx)
    assert many < 1.5 * few
