"""The data version: it changes when the data do, whoever changes them, and holds only while somebody can say so."""

import errno
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest

from tests.wait import wait_until
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.counters import next_number
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Rollback, Transaction

Open = Callable[[], Store]
postgresql_only = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
LISTENERS: Final = "FROM pg_stat_activity WHERE application_name = 'trellis listener' AND datname = current_database()"
COUNT: Final = "UPDATE counters SET last = last + %s WHERE name = 'data version'"


@pytest.fixture
def opened(settings: Settings) -> Iterator[Open]:
    """Open the database as a process does that serves; several are several processes."""
    stores: list[Store] = []

    def open_one() -> Store:
        store = Store(settings)
        stores.append(store)
        store.listen()
        wait_until(lambda: store.data_version() is not None)
        return store

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Open) -> Store:
    return opened()


@contextmanager
def by_hand(settings: Settings) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(settings.database_url, autocommit=True) as connection:
        yield connection


def take(tx: Transaction) -> int:
    return next_number(tx, "tickets")


def look(_: Transaction) -> None:
    """Write nothing."""


def seen(store: Store) -> int:
    """Return the data version, as soon as there is one: on a crowded machine it may have ended for a moment."""
    while (version := store.data_version()) is None:
        time.sleep(0.005)
    return version


def wait_for_readings(settings: Settings) -> None:
    """Wait until every process that listens on PostgreSQL has read the row twice from here on."""
    with by_hand(settings) as connection:

        def readings() -> set[Any]:
            return set(connection.execute(f"SELECT pid, query_start {LISTENERS} AND state = 'idle'").fetchall())

        for _ in range(3):  # the first may have begun before this was called
            before = readings()
            wait_until(lambda before=before: readings().isdisjoint(before))  # type: ignore[misc]  # of each turn its own


def noticed(store: Store, before: int) -> Callable[[], bool]:
    return lambda: store.data_version() not in {before, None}


def test_an_own_write_has_changed_it_once_it_is_acknowledged(store: Store) -> None:
    for _ in range(50):
        before = seen(store)
        store.write(take).result(30)
        assert seen(store) != before


def test_writes_that_share_a_commit_are_noticed_all_the_same(store: Store) -> None:
    for _ in range(10):
        before = seen(store)
        for future in [store.write(take) for _ in range(20)]:
            future.result(30)
            assert seen(store) != before


def test_the_write_of_another_process_is_noticed(opened: Open, engine: str) -> None:
    here, there = opened(), opened()
    for _ in range(30):
        before = seen(here)
        there.write(take).result(30)
        wait_until(noticed(here, before), at_once=engine == "sqlite")


def test_without_changes_it_stays(opened: Open, settings: Settings, engine: str) -> None:
    here, there = opened(), opened()
    before = seen(here)

    def undone(tx: Transaction) -> None:
        take(tx)
        raise Rollback(None)

    for store in (here, there):
        store.write(look).result(30)
        store.write(undone).result(30)
    if engine == "postgresql":
        wait_for_readings(settings)
    assert seen(here) == before


@postgresql_only
def test_an_own_write_is_not_noticed_twice(store: Store, settings: Settings) -> None:
    store.write(take).result(30)
    before = seen(store)
    wait_for_readings(settings)
    assert seen(store) == before


@postgresql_only
def test_quiet_writes_leave_it_and_do_not_quieten_the_others(store: Store, settings: Settings) -> None:
    before = seen(store)
    store.write(take, quiet=True).result(30)
    wait_for_readings(settings)
    assert seen(store) == before
    go = threading.Event()
    futures: list[Future[Any]] = [
        store.write(lambda _: go.wait(30), quiet=True),
        store.write(take),
        store.write(take, quiet=True),
    ]
    go.set()
    for future in futures:
        future.result(30)
    assert seen(store) != before


def test_what_leaves_nothing_leaves_it_beside_a_quiet_write_too(store: Store, settings: Settings, engine: str) -> None:
    def refused(tx: Transaction) -> None:
        take(tx)
        raise Refused("INVALID_VALUE", "")

    def undone(tx: Transaction) -> None:
        take(tx)
        raise Rollback(None)

    before = seen(store)
    go = threading.Event()
    futures: list[Future[Any]] = [
        store.write(lambda _: go.wait(30), quiet=True),
        store.write(undone),
        store.write(take, quiet=True),
        store.write(refused),
    ]
    go.set()
    wait_until(lambda: all(future.done() for future in futures))
    if engine == "postgresql":
        wait_for_readings(settings)
    assert seen(store) == before


@postgresql_only
def test_there_is_none_before_anybody_listens(settings: Settings) -> None:
    store = Store(settings)
    store.write(take).result(30)
    assert store.data_version() is None
    store.close()
    assert store.data_version() is None


@postgresql_only
def test_there_is_none_after_the_end(store: Store, settings: Settings) -> None:
    store.close()
    assert store.data_version() is None
    with by_hand(settings) as connection:
        wait_until(lambda: connection.execute(f"SELECT count(*) {LISTENERS}").fetchone() == (0,))


@postgresql_only
def test_a_lost_connection_ends_it_and_the_next_has_another(opened: Open, settings: Settings) -> None:
    here, there = opened(), opened()
    versions: set[int | None] = {None, seen(here)}
    with by_hand(settings) as connection:
        for _ in range(3):
            connection.execute(f"SELECT pg_terminate_backend(pid) {LISTENERS}")
            wait_until(lambda: here.data_version() not in versions)
            versions.add(seen(here))
    before = seen(here)
    there.write(take).result(30)
    wait_until(noticed(here, before))


@postgresql_only
def test_what_was_counted_before_a_lost_connection_is_counted_again(store: Store, settings: Settings) -> None:
    """The server may be another one now, which lacks the latest commits and gives their numbers again."""
    keep_count(store)
    with by_hand(settings) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) {LISTENERS}")
    wait_until(lambda: not is_count_kept(store))


def keep_count(store: Store) -> None:
    """Keep something as the lists keep what they have counted."""
    with store.reading() as tx:
        tx.cache.put(("a count",), 1)


def is_count_kept(store: Store) -> bool:
    with store.reading() as tx:
        return tx.cache.get(("a count",)) is not None


@postgresql_only
def test_a_lost_notification_is_made_up_for(store: Store, settings: Settings) -> None:
    store.write(take).result(30)
    with by_hand(settings) as connection:
        for _ in range(3):
            before = seen(store)
            connection.execute(COUNT, (1,))
            wait_until(lambda before=before: store.data_version() != before)  # type: ignore[misc]


@postgresql_only
def test_a_database_that_is_put_back_is_noticed(store: Store, settings: Settings) -> None:
    for _ in range(3):
        store.write(take).result(30)
    before = seen(store)
    keep_count(store)
    with by_hand(settings) as connection:
        connection.execute(COUNT, (-2,))
        wait_until(noticed(store, before))
    wait_until(lambda: not is_count_kept(store))
    before = seen(store)
    store.write(take).result(30)
    assert seen(store) != before


@postgresql_only
def test_what_was_changed_by_hand_can_be_told_by_hand(store: Store, settings: Settings) -> None:
    before = seen(store)
    with by_hand(settings) as connection:
        connection.execute("NOTIFY trellis_data")
    wait_until(noticed(store, before))


@postgresql_only
def test_it_ends_when_the_database_does_not_answer(store: Store, settings: Settings) -> None:
    """As with a network that swallows everything: the connection stands, and nothing comes."""
    with psycopg.connect(settings.database_url) as connection:
        connection.execute("LOCK TABLE counters")
        wait_until(lambda: store.data_version() is None)
        connection.rollback()
        wait_until(lambda: store.data_version() is not None)


@postgresql_only
def test_it_ends_by_itself_after_a_minute(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = seen(store)
    monkeypatch.setattr("trellis.store.engine.invalidation._LONGEST", 0.1)
    wait_until(noticed(store, before))


@postgresql_only
def test_commits_are_followed_where_no_more_files_can_be_opened(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls at that moment takes each descriptor that gets free, so that the thread must not need one to wait."""
    here, there = opened(), opened()
    there.write(take).result(30)

    def fail() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(selectors, "DefaultSelector", fail)
    for _ in range(3):
        before = seen(here)
        there.write(take).result(30)
        wait_until(noticed(here, before))
