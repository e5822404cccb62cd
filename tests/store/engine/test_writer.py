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
