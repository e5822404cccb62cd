"""The writer: what becomes of a write that the database ends."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.counters import next_number
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction

pytestmark = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store(replace(settings, busy_timeout=1))
    yield store
    store.close()


def take(tx: Transaction) -> int:
    return next_number(tx, "tickets")


def test_a_write_that_waits_too_long_for_a_table_is_told_that_the_database_is_busy(store: Store, settings: Settings) -> None:
    """An operator's session may hold one, or a migration that is under way."""
    assert store.write(take).result(30) == 1
    with psycopg.connect(settings.database_url) as other:
        other.execute("LOCK TABLE counters IN EXCLUSIVE MODE")
        with pytest.raises(Refused, match=r"^BUSY: The database is busy"):
            store.write(take).result(60)
    assert store.write(take).result(30) == 2


def test_a_write_that_the_operator_ends_is_told_that_the_database_is_busy_and_the_others_stay(
    store: Store, settings: Settings
) -> None:
    def cancel_itself(tx: Transaction) -> None:
        take(tx)
        tx.raw.execute("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(30)")

    assert store.write(take).result(30) == 1
    with pytest.raises(Refused, match=r"^BUSY"):
        store.write(cancel_itself).result(60)
    assert store.write(take).result(30) == 2


def test_a_server_that_accepts_no_writes_is_left_for_the_one_that_does_then(store: Store) -> None:
    """After a failover, open connections may lead to what is a standby now; and a full disk may have made a server read-only."""
    with store.reading(snapshot=False) as one, store.reading(snapshot=False) as another:  # which are in the pool then
        for tx in (one, another):
            tx.raw.execute("SET default_transaction_read_only = on")
    with pytest.raises(Refused, match=r"^BUSY: The database accepts no writes: its server is a standby, or was set to") as refused:
        store.write(take).result(30)
    assert "read-only transaction" in str(refused.value.__cause__)
    assert store.write(take).result(30) == 1


def test_an_error_inside_the_server_is_no_error_of_the_service(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        tx.raw.execute("DO $$ BEGIN RAISE EXCEPTION 'a page is broken' USING ERRCODE = 'data_corrupted'; END $$")

    with pytest.raises(Refused, match=r"^BUSY"), store.reading() as tx:
        fail(tx)
    with pytest.raises(Refused, match=r"^BUSY"):
        store.write(fail).result(30)
    assert store.write(take).result(30) == 1
