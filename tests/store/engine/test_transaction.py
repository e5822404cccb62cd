"""The statements of a transaction: what they return, on both engines alike."""

from itertools import count
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Overdue, Statement
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction
from trellis.store.tables import counters, nodes

_VALUES: dict[str, Any] = {
    "text": 'ä, \u2028, \U0001f600, "quoted" \\ and </script>',
    "most": 2**63 - 1,
    "least": -(2**63),
    "fraction": 0.1,
    "large": 1e300,
    "nothing": None,
    "yes": True,
    "nested": {"list": [1, [2, {}], []], "": ""},
}
_NODE = {
    "kind": "forums",
    "id": 1000,
    "block_offset": 0,
    "name": "A",
    "name_key": "a",
    "permissions": {"view": "*", "read": [3, 4]},
    "fields": _VALUES,
    "created_at": "",
    "updated_at": "",
}
_THIS = nodes.c.id == 1000
_READ = Statement(sa.select(nodes.c.fields, nodes.c.permissions).where(_THIS))
_COUNTERS = Statement(sa.select(counters.c.name, counters.c.last).where(counters.c.name == bindparam("name")))
_ADD = Statement(sa.insert(counters).values(name=bindparam("name"), last=bindparam("last"), total=bindparam("total")))


def add(tx: Transaction, *names: str) -> None:
    for number, name in enumerate(names):
        tx.execute(_ADD, name=name, last=number, total=0)


def read(tx: Transaction, name: str) -> list[tuple[Any, ...]]:
    return tx.fetch(_COUNTERS, name=name)


def test_json_is_read_as_it_was_written_by_statements_and_by_sqlalchemy(store: Store) -> None:
    store.write(lambda tx: tx.connection.execute(sa.insert(nodes), _NODE)).result(30)
    with store.reading() as tx:
        ((fields, permissions),) = tx.fetch(_READ)
        by_sqlalchemy = tx.connection.execute(sa.select(nodes.c.fields, nodes.c.permissions).where(_THIS)).one()
        assert (tx.decode(fields), tx.decode(permissions)) == (_VALUES, _NODE["permissions"]) == tuple(by_sqlalchemy)
        assert [type(value) for value in tx.decode(fields).values()].count(int) == 2


def test_what_a_statement_returned_stays_when_another_has_run(store: Store) -> None:
    def work(tx: Transaction) -> tuple[Any, ...]:
        add(tx, "first", "second")
        first = read(tx, "first")
        changed = tx.execute(Statement(sa.update(counters).where(counters.c.name.in_(["first", "second"])).values(total=7)))
        return first, changed, read(tx, "second"), first

    first, changed, second, again = store.write(work).result(30)
    assert first == again == [("first", 0)]
    assert changed == 2
    assert second == [("second", 1)]


def test_statements_run_on_after_one_that_failed_within_a_savepoint(store: Store) -> None:
    def work(tx: Transaction) -> list[tuple[Any, ...]]:
        add(tx, "first")
        with pytest.raises(Exception, match=r"(?i)unique"), tx.savepoint():
            add(tx, "first")
        add(tx, "second")
        return read(tx, "second")

    assert store.write(work).result(30) == [("second", 0)]


def test_a_reader_whose_connection_was_lost_gets_another(store: Store) -> None:
    if store.reads_inline:
        pytest.skip("a file is not lost over a network")
    with store.reading(snapshot=False) as tx:
        read(tx, "any")
        tx.raw.close()
    with store.reading(snapshot=False) as tx:
        assert read(tx, "any") == []


def test_a_statement_for_very_many_rows_ends_in_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check of the time takes a second, so that the third batch of rows would begin too late."""
    monkeypatch.setattr("trellis.store.engine.transaction.monotonic", count().__next__)
    rows = [{"name": f"sequence {n}", "last": n, "total": n} for n in range(6001)]

    def work(tx: Transaction) -> None:
        with tx.ending_by(1):
            tx.execute_many(_ADD, rows)

    with pytest.raises(Overdue):
        store.write(work).result(30)
    with store.reading() as tx:
        assert not tx.fetch(_COUNTERS, name="sequence 0")
