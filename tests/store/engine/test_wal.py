"""SQLite's write-ahead log: it stays small although somebody reads at every moment."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sqlite_file import file_of
from tests.wait import GIVE_UP, wait_until
from trellis.settings import Settings
from trellis.store.engine import writer
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

LARGE = 2**20


@pytest.fixture
def store(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(writer, "_LARGE_WAL", LARGE)
    store = Store(settings)
    store.write(lambda tx: tx.raw.execute("CREATE TABLE pictures AS SELECT '' AS picture").fetchall()).result(30)
    yield store
    store.close()


@pytest.fixture
def wal(settings: Settings) -> Path:
    return Path(f"{file_of(settings)}-wal")


def write_much(tx: Transaction) -> None:
    """Write a quarter of a megabyte to a row."""
    tx.raw.execute("UPDATE pictures SET picture = hex(randomblob(125000))")


def write_much_often(store: Store, wal: Path) -> int:
    """Write fifteen megabytes; return the largest size of the log."""
    largest = 0
    for _ in range(60):
        store.write(write_much).result(30)
        largest = max(largest, wal.stat().st_size)
    return largest


@contextmanager
def readers_by_turns(store: Store) -> Iterator[None]:
    """Read in two threads, of which each ends its snapshot only once the other has begun the next one."""
    is_over, turns = threading.Event(), (threading.Semaphore(0), threading.Semaphore(0))

    def read(mine: threading.Semaphore, other: threading.Semaphore) -> None:
        while not is_over.is_set():
            with store.reading() as tx:
                tx.raw.execute("SELECT picture FROM pictures").fetchone()
                mine.release()
                while not other.acquire(timeout=0.1) and not is_over.is_set():
                    pass

    threads = [threading.Thread(target=read, args=pair) for pair in (turns, turns[::-1])]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join(30)


def test_it_stays_small_where_reads_overlap_all_the_time(store: Store, wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_READERS", GIVE_UP)
    with readers_by_turns(store):
        assert write_much_often(store, wal) < 4 * LARGE


def test_a_read_that_lasts_keeps_it_and_the_log_says_so(
    store: Store, wal: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "_READERS", 0.0)
    with store.reading() as tx:
        before = tx.raw.execute("SELECT picture FROM pictures").fetchone()
        assert write_much_often(store, wal) > 8 * LARGE
        assert tx.raw.execute("SELECT picture FROM pictures").fetchone() == before
    told = "The write-ahead log has 1 MiB, and long reads keep it from being emptied."
    assert [record.getMessage() for record in caplog.records] == [told], "no write waits for it again so soon"


def test_it_is_emptied_once_the_reads_have_ended(store: Store, wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_READERS", 0.0)
    monkeypatch.setattr(writer, "_EMPTY_AGAIN", 0.0)
    with store.reading() as tx:
        tx.raw.execute("SELECT picture FROM pictures").fetchone()
        assert write_much_often(store, wal) > 8 * LARGE
    store.write(write_much).result(30)
    wait_until(lambda: wal.stat().st_size <= LARGE)
