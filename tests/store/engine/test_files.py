"""Who has a SQLite file open, and who may not."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.program import running
from tests.sqlite_file import file_of
from trellis.settings import Settings
from trellis.store.engine import DatabaseInUse, Store, files, open_engine
from trellis.store.engine.files import FileLock

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

_BUG = "SQLite 3.40.1 can lose writes."
_HOLD = """
import sys
from pathlib import Path
from trellis.store.engine.files import FileLock
FileLock(Path(sys.argv[1])).share()
print("holds", flush=True)
input()
"""


@contextmanager
def sharing(settings: Settings) -> Iterator[None]:
    """Have another process use the database."""
    command = (sys.executable, "-c", _HOLD, file_of(settings))
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"holds\n"
        yield


def connect(settings: Settings) -> None:
    with open_engine(settings) as engine:
        engine.connect().close()


def test_processes_share_a_database_and_nobody_takes_it_from_them(settings: Settings) -> None:
    with sharing(settings):
        connect(settings)
        with pytest.raises(DatabaseInUse, match="in use by another process"):
            FileLock(file_of(settings)).take()
    FileLock(file_of(settings)).take()


def test_threads_that_share_at_the_same_time_leave_nothing_locked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    opening, open_lock = threading.Barrier(2), files._open_lock

    def open_together(database: Path) -> int:
        with suppress(threading.BrokenBarrierError):
            opening.wait(0.2)  # long enough for both threads, if nothing keeps the second one out
        return open_lock(database)

    monkeypatch.setattr(files, "_open_lock", open_together)
    lock = FileLock(file_of(settings))
    threads = [threading.Thread(target=lock.share) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lock.release()
    FileLock(file_of(settings)).take()


def test_a_process_that_is_killed_holds_nothing(settings: Settings) -> None:
    with sharing(settings):
        pass
    lock = FileLock(file_of(settings))
    lock.take()
    lock.release()


def test_a_store_that_is_closed_holds_nothing(settings: Settings) -> None:
    store = Store(settings)
    with store.reading():
        pass
    with pytest.raises(DatabaseInUse):
        FileLock(file_of(settings)).take()
    store.close()
    FileLock(file_of(settings)).take()


def test_with_a_sqlite_that_loses_writes_there_is_one_process(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.sqlite.describe_wal_reset_bug", lambda: _BUG)
    connect(settings)
    with sharing(settings), pytest.raises(DatabaseInUse, match=_BUG):
        connect(settings)
    connect(settings)


def test_whoever_may_use_the_database_may_use_its_lock(settings: Settings) -> None:
    database = file_of(settings)
    database.with_name(f"{database.name}-lock").unlink(missing_ok=True)
    database.chmod(0o660)
    mask = os.umask(0o077)
    try:
        FileLock(database).share()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(database.with_name(f"{database.name}-lock").stat().st_mode) == 0o660


def test_nobody_uses_a_database_whose_lock_they_cannot_open(settings: Settings) -> None:
    """They would see nobody who uses it, and nobody would see them."""
    lock = files.lock_file(file_of(settings))
    lock.unlink(missing_ok=True)
    lock.symlink_to(lock)  # root, too, cannot open it
    with pytest.raises(DatabaseInUse, match=r"-lock cannot be opened: Too many levels"):
        connect(settings)
    with pytest.raises(DatabaseInUse):
        FileLock(file_of(settings)).take()
