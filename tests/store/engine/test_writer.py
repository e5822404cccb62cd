"""The writer: what becomes of a write that the database ends."""

import gc
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest

from tests.lost_commits import lost_commits
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.counters import next_number
from trellis.store.engine.limited import LimitedConnection
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


def test_a_process_that_is_stopped_in_a_write_does_not_keep_the_others_from_writing(settings: Settings) -> None:
    """Its server would hold the lock of all writers for hours, since nothing tells it that a machine has lost its power."""
    brief = replace(settings, busy_timeout=30, database_write_timeout=1, job_timeout=1)
    here, there = Store(brief), Store(brief)
    has_begun, goes_on = threading.Event(), threading.Event()

    def be_stopped(tx: Transaction) -> int:
        take(tx)
        has_begun.set()
        goes_on.wait(60)
        return take(tx)

    stopped = here.write(be_stopped)
    assert has_begun.wait(30)
    try:
        assert there.write(take).result(60) == 1
    finally:
        goes_on.set()
    with pytest.raises(Refused, match=r"^BUSY"):
        stopped.result(60)
    assert here.write(take).result(30) == 2
    here.close()
    there.close()


def test_a_limit_of_the_operator_for_idle_transactions_stays(settings: Settings) -> None:
    store = Store(replace(settings, database_url=f"{settings.database_url}&options=-cidle_in_transaction_session_timeout%3D7s"))
    told = store.write(lambda tx: tx.raw.execute("SHOW idle_in_transaction_session_timeout").fetchone()[0])
    assert told.result(30) == "7s"
    store.close()


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


def test_a_commit_that_is_not_acknowledged_may_have_been_made(store: Store) -> None:
    assert store.write(take).result(30) == 1
    match = r"^BUSY: The connection .* this write may have been made\. Look before you"
    with lost_commits(), pytest.raises(Refused, match=match) as refused:
        store.write(take).result(30)
    assert "nothing was changed" not in refused.value.detail
    assert store.write(take).result(30) == 3


def test_a_full_disk_is_told(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        tx.raw.execute("DO $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$")

    with pytest.raises(Refused, match=r"^BUSY: The disk of the database server is full\. As far as we know, nothing was changed"):
        store.write(fail).result(30)
    with pytest.raises(Refused, match=r"^BUSY: The disk of the database server is full"), store.reading() as tx:
        fail(tx)
    assert store.write(take).result(30) == 1


def test_a_connection_that_is_lost_as_soon_as_it_is_opened_leaves_no_traceback_in_the_log(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepare = LimitedConnection.prepare_for_writes

    def lose(connection: LimitedConnection, limit: float, idle: int) -> None:
        with suppress(psycopg.Error):
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        prepare(connection, limit, idle)

    with monkeypatch.context() as patch:
        patch.setattr(LimitedConnection, "prepare_for_writes", lose)
        with pytest.raises(Refused, match=r"^BUSY"):
            store.write(take).result(30)
    assert store.write(take).result(30) == 1
    store.close()
    gc.collect()
    assert [record.name for record in caplog.records if record.exc_info] == []
