"""The database's door: one writer whose waiting writes share a commit, snapshots for readers, and an answer in every trouble."""

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from tests.no_threads import without_new_threads
from tests.sqlite_file import open_sqlite
from trellis.errors import LongRead, Refused
from trellis.settings import Settings
from trellis.store.counters import last_number, next_number
from trellis.store.engine import limited, writer
from trellis.store.engine.outage import refuse_busy
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Rollback, Transaction
from trellis.store.engine.writer import WRITE_LOCK, Writer
from trellis.store.tables import administrators


def take(tx: Transaction) -> int:
    """A small write: take the next ticket."""
    return next_number(tx, "tickets")


def test_a_read_whose_time_is_over_ends_its_snapshot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.sqlite._STEPS", 1)  # SQLite asks for the time in each statement, even BEGIN and ROLLBACK
    monkeypatch.setattr("trellis.store.engine.store.BRIEFLY", -1.0)
    with store.reading_briefly(), store.reading():
        pass
    for number in (1, 2):
        store.write(take).result(30)
        with suppress(LongRead), store.reading_briefly(), store.reading() as tx:
            last_number(tx, "tickets")
        with store.reading() as tx:
            assert last_number(tx, "tickets") == number


def taken(store: Store) -> int:
    """How many tickets a reader sees taken."""
    with store.reading() as tx:
        return in_view(tx)


def in_view(tx: Transaction) -> int:
    rows = tx.raw.execute("SELECT last FROM counters WHERE name = 'tickets'").fetchall()
    return int(rows[0][0]) if rows else 0


@contextmanager
def held_up(store: Store) -> Iterator[None]:
    """Keep the writer busy, so that what is handed in meanwhile waits together."""
    go = threading.Event()
    begun = threading.Event()

    def wait(_: Transaction) -> None:
        begun.set()
        go.wait(30)

    first = store.write(wait)
    begun.wait(30)
    yield
    go.set()
    first.result(30)


@contextmanager
def neighbour(settings: Settings) -> Iterator[tuple[Callable[[], Any], Callable[[], Any]]]:
    """Another program that takes the write lock of the database, and lets it go."""
    if settings.database_url.startswith("sqlite"):
        lite = open_sqlite(settings)
        yield lambda: lite.execute("BEGIN IMMEDIATE"), lambda: lite.execute("ROLLBACK")
        lite.close()
    else:
        with psycopg.connect(settings.database_url, autocommit=True) as pg:
            yield (
                lambda: pg.execute(f"SELECT pg_advisory_lock({WRITE_LOCK})"),
                lambda: pg.execute("SELECT pg_advisory_unlock_all()"),
            )


# --- writing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["SELECT * FROM gone", "SELECT gone FROM nodes"])
def test_a_database_that_lacks_tables_or_columns_refuses_reads_and_writes_as_that(store: Store, missing: str) -> None:
    """Such as during a restore: the caller can try again, and the operator knows what to look for."""
    lacks = r"^BUSY: Tables or columns that this release needs are missing: this is the wrong database, or it is being restored\."
    with pytest.raises(Refused, match=lacks), store.reading() as tx:
        tx.raw.execute(missing)
    failing, other = store.write(lambda tx: tx.raw.execute(missing)), store.write(lambda _tx: "done")
    with pytest.raises(Refused, match=lacks):
        failing.result(30)
    assert (other.result(30), store.faults.reason) == ("done", None)


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_an_account_that_lacks_a_right_refuses_reads_and_writes_as_that(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as after a migration by the owner of the tables, who has not granted the rights on a new one."""
    monkeypatch.setattr(limited, "_SEE_COMMITS", "SET ROLE pg_monitor")
    lacks = r"^BUSY: The service's account at the database lacks a right, which the log names\."
    with pytest.raises(Refused, match=lacks), store.reading() as tx:
        tx.raw.execute("SELECT * FROM nodes")
    with pytest.raises(Refused, match=lacks):
        store.write(lambda tx: tx.raw.execute("DELETE FROM nodes")).result(30)
    assert "permission denied for table nodes" in caplog.text


def test_a_write_gives_its_result_and_is_seen_by_readers(store: Store) -> None:
    assert store.write(take).result(30) == 1
    assert taken(store) == 1


def test_a_failing_write_among_many_leaves_the_others(store: Store) -> None:
    def fail(tx: Transaction) -> int:
        take(tx)
        raise LookupError("not this one")

    with held_up(store):
        futures = [store.write(fail if turn in {0, 3, 9} else take) for turn in range(10)]
    for turn, future in enumerate(futures):
        if turn in {0, 3, 9}:
            with pytest.raises(LookupError, match="not this one"):
                future.result(30)
        else:
            assert future.result(30) > 0
    assert taken(store) == 7


def test_a_write_that_breaks_a_rule_of_the_database_leaves_the_others(store: Store) -> None:
    def orphan(tx: Transaction) -> None:
        take(tx)
        tx.raw.execute(
            "INSERT INTO nodes (kind, id, parent_id, block_offset, name, name_key, fields, permissions, created_at, updated_at)"
            " VALUES ('forums', 1, 99, 0, 'X', 'x', '{}', '{}', '', '')"
        )

    with held_up(store):
        before, broken, after = store.write(take), store.write(orphan), store.write(take)
    assert (before.result(30), after.result(30)) == (1, 2)
    assert type(broken.exception(30)).__name__ in {"ConstraintError", "IntegrityError", "ForeignKeyViolation"}


def test_writes_that_wait_together_share_a_commit_and_are_acknowledged_only_after_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_BATCH_SECONDS", 60)  # however long the first takes
    seen: list[tuple[bool, int, int]] = []

    def second(tx: Transaction) -> None:
        seen.append((first.done(), in_view(tx), taken(store)))

    with held_up(store):
        first = store.write(take)
        last = store.write(second)
    last.result(30)
    assert seen == [(False, 1, 0)], "the second sees the first's write in the same transaction, which nobody else sees yet"
    assert first.done()


def test_a_write_that_undoes_itself_gives_its_value_and_leaves_nothing(store: Store) -> None:
    def try_on(tx: Transaction) -> int:
        raise Rollback(take(tx))

    with held_up(store):
        tried, real, again = store.write(try_on), store.write(take), store.write(try_on)
    assert (tried.result(30), real.result(30), again.result(30)) == (1, 1, 2)
    assert taken(store) == 1


def test_a_cancelled_write_is_not_done_and_stops_nobody(store: Store) -> None:
    with held_up(store):
        futures = [store.write(take) for _ in range(5)]
        assert futures[0].cancel()
        assert futures[3].cancel()
    assert [future.result(30) for turn, future in enumerate(futures) if turn not in {0, 3}] == [1, 2, 3]
    assert store.write(take).result(30) == 4


def test_even_a_write_that_wants_to_end_the_program_does_not_end_the_writer(store: Store) -> None:
    def leave(_: Transaction) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        store.write(leave).result(30)
    assert store.write(take).result(30) == 1


def test_a_write_withdrawn_while_its_failure_is_recorded_does_not_end_the_writer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted, refuse = threading.Event(), refuse_busy

    def fail(_engine: sa.Engine) -> sa.Connection:
        submitted.wait(30)
        raise OSError("there is no way to the database")

    def refuse_after_withdrawal(*given: Any) -> Refused:
        withdrawn.cancel()
        return refuse(*given)

    monkeypatch.setattr(writer, "refuse_busy", refuse_after_withdrawal)
    with monkeypatch.context() as unreachable:
        unreachable.setattr(sa.Engine, "connect", fail)
        withdrawn = store.write(take)
        submitted.set()
        with pytest.raises((CancelledError, Refused)):
            withdrawn.result(30)
    assert store.write(take).result(30) == 1


def test_a_thread_that_cannot_be_started_is_started_for_the_next_write(store: Store) -> None:
    with without_new_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        store.write(take)
    assert store.write(take).result(30) == 1


def test_a_change_of_keys_is_acknowledged_where_no_thread_can_be_started(store: Store) -> None:
    def change_keys(tx: Transaction) -> int:
        tx.changes_keys = True
        return take(tx)

    assert store.write(take).result(30) == 1
    with without_new_threads():
        assert store.write(change_keys).result(30) == 2
    assert store.write(change_keys).result(30) == 3


def test_a_write_after_closing_is_refused(settings: Settings) -> None:
    store = Store(settings)
    assert store.write(take).result(30) == 1
    store.close()
    with pytest.raises(Refused, match=r"^BUSY: The service is stopping"):
        store.write(take).result(30)
    assert taken(store) == 1
    store.close()


def test_closing_finishes_the_writes_that_wait(settings: Settings) -> None:
    store = Store(settings)
    with held_up(store):
        futures = [store.write(take) for _ in range(200)]
    store.close()
    assert [future.result(0) for future in futures] == list(range(1, 201))
    assert taken(store) == 200  # it opens again when it is used again
    store.close()


def test_closing_while_writes_wait_finishes_them_and_ends(store: Store) -> None:
    with held_up(store):
        futures = [store.write(take) for _ in range(10)]
        closing = threading.Thread(target=store.close)
        closing.start()
        time.sleep(0.05)  # the end is now in the row behind the ten, and in reach of their common commit
    closing.join(30)
    assert not closing.is_alive()
    assert [future.result(0) for future in futures] == list(range(1, 11))


def test_a_store_that_was_never_used_can_be_closed(settings: Settings) -> None:
    Store(settings).close()


def test_two_stores_on_one_database_take_turns(settings: Settings) -> None:
    stores = [Store(settings), Store(settings)]
    futures: list[Future[int]] = [store.write(take) for _ in range(100) for store in stores]
    assert sorted(future.result(30) for future in futures) == list(range(1, 201))
    for store in stores:
        assert taken(store) == 200
        store.close()


# --- reading ------------------------------------------------------------------------------------------------------


def test_a_reader_sees_the_database_as_it_was_when_it_began(store: Store) -> None:
    store.write(take).result(30)
    with store.reading() as tx:
        assert in_view(tx) == 1
        store.write(take).result(30)
        assert in_view(tx) == 1
    assert taken(store) == 2


def test_readers_do_not_wait_for_a_write(store: Store, settings: Settings) -> None:
    with neighbour(settings) as (lock, unlock):
        lock()
        assert taken(store) == 0
        unlock()


def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match=r"BUSY|read-only"), store.reading() as tx:
        tx.raw.execute("DELETE FROM nodes")
    assert taken(store) == 0


def test_what_goes_wrong_while_reading_reaches_the_reader_and_harms_no_later_one(store: Store) -> None:
    def stumble() -> None:
        with store.reading() as tx:
            in_view(tx)
            raise LookupError

    with pytest.raises(LookupError):
        stumble()
    assert taken(store) == 0


def test_many_threads_read_at_once(store: Store) -> None:
    store.write(take).result(30)
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.extend(taken(store) for _ in range(20))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == [1] * 160


# --- trouble ------------------------------------------------------------------------------------------------------


def test_a_write_that_waits_too_long_for_another_program_is_told_that_the_database_is_busy(settings: Settings) -> None:
    store = Store(replace(settings, busy_timeout=1))
    store.write(take).result(30)
    with neighbour(settings) as (lock, unlock):
        lock()
        with pytest.raises(Refused, match=r"^BUSY: The database is busy: this write has waited"):
            store.write(take).result(60)
        unlock()
        assert store.write(take).result(30) == 2
    store.close()


def test_a_write_that_cannot_have_the_lock_is_refused_even_if_its_time_has_not_quite_passed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL ends the wait by a clock of its own, in whole milliseconds."""
    store.write(take).result(30)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_begin", lambda *_: False)
        with pytest.raises(Refused, match=r"^BUSY"):
            store.write(take).result(60)
    assert store.write(take).result(30) == 2


def test_the_time_to_wait_is_counted_from_when_a_write_is_handed_in(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are handed in together are refused together, and not one timeout after the other."""
    store, waits = Store(replace(settings, busy_timeout=2)), []
    begin = Writer._begin

    def note(writer: Writer, tx: Transaction, first: Any) -> bool:
        waits.append(first.until)
        return begin(writer, tx, first)

    monkeypatch.setattr(Writer, "_begin", note)
    store.write(take).result(30)
    with neighbour(settings) as (lock, unlock):
        lock()
        handed_in = time.monotonic()
        futures = [store.write(take) for _ in range(20)]
        handed_in_until = time.monotonic()
        for future in futures:
            with pytest.raises(Refused, match=r"^BUSY"):
                future.result(60)
        assert all(handed_in + 2 <= until <= handed_in_until + 2 for until in waits[1:])
        unlock()
    assert store.write(take).result(30) == 2, "what was refused is never begun"
    store.close()


def test_what_is_withdrawn_while_it_waits_is_never_begun(store: Store) -> None:
    with held_up(store):
        futures = [store.write(take) for _ in range(5)]
        assert all(future.cancel() for future in futures[:-1])
    assert futures[-1].result(30) == 1


def test_what_is_withdrawn_while_another_program_holds_the_database_is_never_begun(store: Store, settings: Settings) -> None:
    store.write(take).result(30)
    with neighbour(settings) as (lock, unlock):
        lock()
        gone, stays = store.write(take), store.write(take)
        assert gone.cancel(), "it waits for the lock, and has not begun"
        unlock()
        assert stays.result(30) == 2


def test_writes_for_which_there_is_no_place_are_refused_at_once(settings: Settings) -> None:
    store = Store(replace(settings, write_queue=3))
    with held_up(store):
        waiting = [store.write(take) for _ in range(3)]
        refused = [store.write(take) for _ in range(100)]
        assert all("Too many writes are already waiting" in str(future.exception(0)) for future in refused)
        bookkeeping = store.write(take, quiet=True)
    assert [future.result(30) for future in [*waiting, bookkeeping]] == [1, 2, 3, 4]
    assert store.write(take).result(30) == 5
    store.close()


def test_a_write_gets_its_turn_beside_a_neighbour_that_hardly_ever_lets_go(settings: Settings) -> None:
    store, done, turns, waits = Store(settings), threading.Event(), 0, []
    with neighbour(settings) as (lock, unlock):

        def hog() -> None:
            nonlocal turns
            while not done.is_set():
                lock()
                turns += 1
                time.sleep(0.02)
                unlock()
                time.sleep(0.001)

        thread = threading.Thread(target=hog)
        thread.start()
        for _ in range(25):
            began = turns
            store.write(take).result(60)
            waits.append(turns - began)
            time.sleep(0.007)
        done.set()
        thread.join(30)
    store.close()
    assert max(waits) < 500, "a lock that is free between its owner's turns can be had before many of them"


def test_a_database_that_cannot_be_reached_is_said_to_be_busy(engine: str, settings: Settings, tmp_path: Path) -> None:
    nowhere = f"sqlite:///{tmp_path}" if engine == "sqlite" else f"postgresql://nobody@/nothing?host={tmp_path}"
    store = Store(replace(settings, database_url=nowhere))
    with pytest.raises(Refused, match=r"^BUSY"), store.reading():
        pass
    with pytest.raises(Refused, match=r"^BUSY"):
        store.write(take).result(30)
    store.close()


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize("first", [taken, lambda store: store.write(take).result(30)], ids=["reading", "writing"])
def test_lost_connections_are_replaced(store: Store, settings: Settings, first: Callable[[Store], int]) -> None:
    store.write(take).result(30)
    assert taken(store) == 1
    with psycopg.connect(settings.database_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(Refused, match=r"^BUSY"):
        first(store)
    assert taken(store) == 1
    with suppress(Refused):  # the writer's own connection may have been lost unnoticed
        store.write(take).result(30)
    now = taken(store)
    assert store.write(take).result(30) == now + 1


@pytest.mark.parametrize("fails", [False, True], ids=["written", "failed"])
def test_garbage_that_refers_to_itself_is_collected_only_after_the_write_that_has_made_it(store: Store, *, fails: bool) -> None:
    garbage: list[weakref.ref[threading.Event]] = []
    enough = 2 * gc.get_threshold()[0]  # objects: more than the collector lets pass without looking

    def has_left(tx: Transaction) -> bool:
        event = threading.Event()
        event.itself = event  # type: ignore[attr-defined]
        garbage.append(weakref.ref(event))
        del event
        objects = [[number] for number in range(enough)]
        if fails:
            raise KeyError(len(objects))
        return garbage[0]() is not None

    if fails:
        with pytest.raises(KeyError):
            store.write(has_left).result(30)
    else:
        assert store.write(has_left).result(30)
    objects = [[number] for number in range(enough)]
    assert garbage[0]() is None, len(objects)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_sqlite_keeps_its_promises_on_every_connection(store: Store) -> None:
    def promises(tx: Transaction) -> list[Any]:
        return [tx.raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")]

    with store.reading() as tx:
        assert promises(tx) == ["wal", 2, 1]
    assert store.write(promises).result(30) == ["wal", 2, 1]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_database_that_is_not_there_is_not_made(settings: Settings, tmp_path: Path) -> None:
    store = Store(replace(settings, database_url=f"sqlite:///{tmp_path}/a/b/c.db"))
    with pytest.raises(Refused, match="BUSY"), store.reading():
        pass
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_the_error_of_a_statement_shows_none_of_its_values(store: Store) -> None:
    def insert_twice(tx: Transaction) -> None:
        row = {"id": 7, "name": "Ada", "login": "ada", "login_key": "ada", "digest": "SECRET", "created_at": "", "updated_at": ""}
        for _ in range(2):
            tx.connection.execute(sa.insert(administrators).values(**row))

    with pytest.raises(sa.exc.IntegrityError) as raised:
        store.write(insert_twice).result()
    assert "INSERT INTO administrators" in str(raised.value)
    assert "SECRET" not in str(raised.value)
