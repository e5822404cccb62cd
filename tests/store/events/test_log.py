"""The rows of events: numbered, filtered and paged."""

from typing import Any

import pytest
import sqlalchemy as sa

from trellis.store.engine.store import Store
from trellis.store.events import log, search, walk
from trellis.store.events.log import Event


def event(**values: Any) -> Event:
    made: dict[str, Any] = {
        "seq": 0,
        "at": "2026-01-31T09:30:00.000Z",
        "operation": "forums.create",
        "actor": {"type": "terminal", "id": None, "name": "terminal"},
        "request_id": None,
        "reason": None,
        "resource": "forums",
        "resource_id": 1,
        "before": None,
        "after": {"id": 1, "name": "新聞 '\"\\"},
        "changed": [],
        "touched": [],
    }
    return Event(**(made | values))


def test_events_are_numbered_and_read_back_as_they_were_written(store: Store) -> None:
    bare = event(request_id=None, after=None, before={"a": [1, None]}, changed=["a"], touched=[{"resource": "forums", "id": 2}])
    assert store.write(lambda tx: [log.append(tx, event(seq=99)), log.append(tx, bare)]).result(30) == [1, 2]
    with store.reading() as tx:
        first, second = walk(tx, log.select_page(tx, {}, None, newest_first=False))
        light = log.read_page(tx, {}, 10, None, newest_first=False)
    assert [(one.seq, one.changed, one.before, one.after) for one in light] == [(1, [], None, None), (2, ["a"], None, None)]
    assert first == event(seq=1)
    assert (second.before, second.after) == ({"a": [1, None]}, None)
    assert list(second.changed) == ["a"]


def test_events_are_filtered_and_paged(store: Store) -> None:
    rows = [event(resource_id=1), event(resource="blogs", operation="blogs.delete"), event(resource_id=2), event(resource_id=1)]
    store.write(lambda tx: [log.append(tx, row) for row in rows]).result(30)

    def seqs(filters: dict[str, Any], limit: int = 10, after: int | None = None, *, newest: bool = False) -> list[int]:
        with store.reading() as tx:
            return [one.seq for one in log.read_page(tx, filters, limit, after, newest_first=newest)]

    assert seqs({}) == [1, 2, 3, 4]
    assert seqs({}, 2, 1) == [2, 3]
    assert seqs({}, 2, newest=True) == [4, 3]
    assert seqs({}, 2, 3, newest=True) == [2, 1]
    assert seqs({"resource": "forums", "resource_id": 1}) == [1, 4]
    assert seqs({"operation": "blogs.delete"}) == [2]


@pytest.mark.parametrize("filters", [{}, {"resource": "forums", "resource_id": 1}, {"resource_id": 1}, {"change_set": 7}], ids=str)
def test_what_a_role_may_see_is_read_in_order_and_never_all_sorted(store: Store, filters: dict[str, Any]) -> None:
    rows = [event(resource=name, resource_id=1, change_set=7) for name in ("forums", "keys", "blogs", "forums")]
    store.write(lambda tx: [log.append(tx, row) for row in rows]).result(30)
    chosen = filters | {"resources": frozenset(("forums", "blogs"))}
    expected = [4, 1] if "resource" in filters else [4, 3, 1]
    executed: list[tuple[str, Any]] = []

    def collect(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    sa.event.listen(store.engine, "before_cursor_execute", collect)
    with store.reading() as tx:
        assert [one.seq for one in search(tx, chosen, 8).found] == expected
        if "resource_id" not in filters or "resource" in filters:
            assert [one.seq for one in log.read_page(tx, chosen, 8, None, newest_first=True)] == expected
        asked = executed if tx.sqlite else []
        plans = [str(row[3]) for sql, given in asked for row in tx.raw.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    is_of_record = "resource_id" in filters and "resource" not in filters  # few are sorted then
    assert is_of_record or not [step for step in plans if "TEMP B-TREE" in step], plans
