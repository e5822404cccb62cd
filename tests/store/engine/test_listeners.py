"""A change of a key is acknowledged when no other process remembers the key as it was, and every other write at once."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

from tests.no_threads import without_new_threads
from tests.wait import wait_until
from trellis.settings import Settings
from trellis.store.counters import next_number
from trellis.store.engine.invalidation import InvalidationListener
from trellis.store.engine.listeners import Listeners
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction

pytestmark = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)


@dataclass
class Process:
    """A process that serves. While it `hangs` its listener takes in nothing, as if the process had been stopped."""

    store: Store
    goes_on: threading.Event = field(default_factory=threading.Event)

    def hang(self) -> None:
        self.goes_on.clear()

    def go_on(self) -> None:
        self.goes_on.set()


class Processes:
    """The processes on one database."""

    def __init__(self, settings: Settings, patch: pytest.MonkeyPatch, opened: ExitStack) -> None:
        self._settings = settings
        self._opened = opened
        self._all: dict[InvalidationListener, Process] = {}
        drain = InvalidationListener._drain

        def wait_and_drain(listener: InvalidationListener, connection: Any, timeout: float = 0) -> None:
            self._all[listener].goes_on.wait()
            drain(listener, connection, timeout)

        patch.setattr(InvalidationListener, "_drain", wait_and_drain)

    def start(self) -> Process:
        process = Process(Store(self._settings))
        process.go_on()
        self._all[process.store._listener] = process
        process.store.listen()
        wait_until(lambda: process.store.data_version() is not None)
        self._opened.callback(process.store.close)
        self._opened.callback(process.go_on)
        return process

    def rows(self) -> int:
        with next(iter(self._all.values())).store.reading() as tx:
            found = tx.raw.execute("SELECT count(*) FROM counters WHERE starts_with(name, 'listener ')").fetchone()
        return int(found[0])


@pytest.fixture
def processes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    with ExitStack() as opened:
        yield Processes(settings, monkeypatch, opened)


def change_key(tx: Transaction) -> None:
    next_number(tx, "tickets")
    tx.changes_keys = True


def change_nothing_of_keys(tx: Transaction) -> None:
    next_number(tx, "tickets")


def test_every_process_has_dropped_what_it_remembered_when_it_is_acknowledged(processes: Processes) -> None:
    here, *others = (processes.start() for _ in range(3))
    for _ in range(50):
        before = [other.store.data_version() for other in others]
        here.store.write(change_key).result(30)
        for other, version in zip(others, before, strict=True):
            assert other.store.data_version() != version or version is None


@pytest.mark.parametrize("breaks_off", [True, False], ids=["failover", "restored backup"])
def test_a_database_that_was_put_back_has_its_changes_of_keys_noticed(
    processes: Processes, settings: Settings, *, breaks_off: bool
) -> None:
    """A standby may lack the last commits of its primary: the numbers of these are used again, for other commits."""
    here, there = processes.start(), processes.start()
    for _ in range(5):
        here.store.write(change_key).result(30)
    before = [one.store.data_version() for one in (here, there)]
    with psycopg.connect(settings.database_url, autocommit=True) as connection:
        connection.execute("UPDATE counters SET last = last - 4 WHERE name LIKE '% version' OR starts_with(name, 'listener ')")
        if breaks_off:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'trellis listener' AND datname = current_database()"
            )
    for one, version in zip((here, there), before, strict=True):
        wait_until(lambda one=one, version=version: one.store.data_version() not in {version, None})  # type: ignore[misc]
    for _ in range(3):
        known = [one.store.key_version() for one in (here, there)]
        here.store.write(change_key).result(30)
        for one, version in zip((here, there), known, strict=True):
            assert one.store.key_version() != version or version is None


def test_one_that_does_not_answer_remembers_nothing_any_more_when_it_is_acknowledged(processes: Processes) -> None:
    here, there = processes.start(), processes.start()
    there.hang()
    version = there.store.data_version()
    future = here.store.write(change_key)
    assert not future.done()
    future.result(30)
    assert there.store.data_version() is None or there.store.data_version() != version


def test_one_that_does_not_answer_delays_the_first_change_and_no_other_write(
    processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = processes.start(), processes.start()
    there.hang()
    delayed = here.store.write(change_key)
    here.store.write(change_nothing_of_keys).result(30)
    assert not delayed.done(), "it did not wait, or the other write did"
    delayed.result(30)
    assert "1 processes have ended or do not answer" in caplog.text
    assert processes.rows() == 1, "it is waited for again"


def test_one_that_comes_back_is_waited_for_again(processes: Processes) -> None:
    here, there = processes.start(), processes.start()
    there.hang()
    here.store.write(change_key).result(30)
    there.go_on()
    wait_until(lambda: there.store.data_version() is not None)
    assert processes.rows() == 2
    before = there.store.data_version()
    here.store.write(change_key).result(30)
    assert there.store.data_version() != before


def test_one_that_was_given_up_remembers_nothing_before_it_is_waited_for(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = processes.start(), processes.start()
    register = Listeners.register
    may_register = threading.Event()

    def wait_and_register(listeners: Listeners, connection: Any) -> None:
        may_register.wait(30)
        register(listeners, connection)

    monkeypatch.setattr(Listeners, "register", wait_and_register)
    there.hang()
    here.store.write(change_key).result(30)
    there.go_on()
    assert all(there.store.data_version() is None for _ in range(1000))
    may_register.set()
    wait_until(lambda: there.store.data_version() is not None)
    assert processes.rows() == 2


def test_one_that_ends_is_not_waited_for(processes: Processes, caplog: pytest.LogCaptureFixture) -> None:
    here, there = processes.start(), processes.start()
    there.store.close()
    assert processes.rows() == 1
    here.store.write(change_key).result(30)
    assert "do not answer" not in caplog.text


def test_a_process_that_serves_nobody_waits_for_those_that_do(processes: Processes, settings: Settings) -> None:
    """As `trellis keys revoke` does in a terminal."""
    there = processes.start()
    terminal = Store(settings)
    before = there.store.data_version()
    terminal.write(change_key).result(30)
    assert there.store.data_version() != before
    terminal.close()


def test_where_nobody_can_be_asked_the_lease_ends_by_itself(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = processes.start(), processes.start()

    def fail(*_: object) -> None:
        raise OSError("no connection is left")

    monkeypatch.setattr(Listeners, "wait_for_others", fail)
    there.hang()
    version = there.store.data_version()
    here.store.write(change_key).result(30)
    assert there.store.data_version() is None or there.store.data_version() != version


def test_reads_that_have_all_connections_delay_no_change_of_a_key(
    processes: Processes, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    processes.start()
    here = Store(replace(settings, database_pool=1, database_pool_timeout=1))
    here.write(lambda tx: next_number(tx, "tickets")).result(30)  # its writer has its connection
    with here.reading():
        here.write(change_key).result(30)
    here.close()
    assert "could not be asked" not in caplog.text


def test_where_no_thread_can_be_started_the_writer_itself_waits_for_the_others(processes: Processes) -> None:
    here, there = processes.start(), processes.start()
    here.store.write(lambda tx: next_number(tx, "tickets")).result(30)  # its writer has been started
    version = there.store.data_version()
    with without_new_threads():
        here.store.write(change_key).result(30)
    assert there.store.data_version() != version
    here.store.write(change_key).result(30)
