"""The data version on SQLite: it changes with what answers show, and not with the request log."""

from typing import Any

import pytest

from tests.sqlite_file import open_sqlite
from tests.wait import wait_until
from trellis.settings import Settings
from trellis.store.counters import next_number
from trellis.store.engine import data_version
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Row, Statement, Transaction
from trellis.store.nodes import rows
from trellis.store.sqlite import FAILURES

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


def take(tx: Transaction) -> None:
    next_number(tx, "forums")


def nothing(tx: Transaction) -> None:
    tx.fetch(rows._FIND, kind="forums", id=0)  # any statement that writes nothing


def test_bookkeeping_leaves_it_and_any_other_write_changes_it(settings: Settings) -> None:
    here, there = Store(settings), Store(settings)
    seen = [here.data_version()]
    for store in (here, there):
        store.write(take, quiet=True).result(30)
        assert here.data_version() == seen[-1]
        store.write(nothing).result(30)
        assert here.data_version() == seen[-1]
        store.write(take).result(30)
        seen.append(here.data_version())
    here.close_reader()
    assert len(set(seen)) == 3, "each is another one"
    assert here.data_version() not in seen[:-1]
    here.close()
    there.close()


def test_changes_that_could_not_be_read_are_read_the_next_time(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(settings)
    before = store.data_version()
    store.write(take).result(30)
    fetch = Transaction.fetch

    def fail(tx: Transaction, statement: Statement, **params: Any) -> list[Row]:
        if statement is data_version._SINCE:
            raise FAILURES[0]("the journal cannot be read")
        return fetch(tx, statement, **params)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "fetch", fail)
        assert store.data_version() is None
    assert store.data_version() not in {before, None}
    store.close()


def test_a_change_by_hand_is_known_after_a_while(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_version, "LONGEST", 0.3)
    store = Store(settings)
    before = store.data_version()
    connection = open_sqlite(settings)
    connection.execute("UPDATE counters SET total = total + 1")
    connection.close()
    wait_until(lambda: store.data_version() != before)
    store.close()
