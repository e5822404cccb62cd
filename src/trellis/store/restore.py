"""A SQLite database replaced by a copy of it, which is made ready before the old one is touched."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.condition import Condition, find_condition
from trellis.store.engine import FileLock, backup, database_files, remove_database
from trellis.store.migrate import migrate

_NEW: Final = ".restoring"  # behind the name of the file that becomes the database


class NotRestorable(Exception):
    """A copy is no database of Trellis, or one of a newer release."""


@dataclass(frozen=True)
class Candidate:
    """A copy that is ready to become the database; `settings` are for looking at it before."""

    settings: Settings
    file: Path
    database: Path

    def put_in_place(self) -> tuple[Path, ...]:
        """Make it the database. The old one is set aside with all that belongs to it: return where its files are now.

        The old database goes first and the files beside it next, so that no file of one is ever found beside the other.
        """
        _close_wal(self.file)
        _own_like(self.file, self.database)
        aside = self.database.with_name(f"{self.database.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        moved = []
        for old, new in zip(reversed(database_files(self.database)), reversed(database_files(aside)), strict=True):
            if old.exists():
                old.rename(new)
                moved.append(new)
        _sync(self.database.parent)
        self.file.rename(self.database)
        _sync(self.database.parent)
        return tuple(moved)


@contextmanager
def prepare_restore(
    settings: Settings, database: Path, copy: Path, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Iterator[Candidate]:
    """Copy a copy beside the database, verify it, and bring it to the newest step; nobody else can use the database meanwhile.

    Raises DatabaseInUse, NotRestorable, Damaged, OSError when nothing can be written there, and sqlite.Error for a copy that cannot
    be read. Whatever is raised, the database is as it was. What was not put in place is deleted.
    """
    lock, file = FileLock(database), database.with_name(database.name + _NEW)
    lock.take()
    try:
        remove_database(file)  # what a restore that was killed has left
        backup(copy, file, progress)
        own = replace(settings, database_url=f"sqlite:///{file.absolute()}")
        at = find_condition(own)
        if at is Condition.NEWER:
            raise NotRestorable(f"{copy} is from a newer release of Trellis: install that one, or choose an older copy.")
        if at not in {Condition.READY, Condition.OLDER}:
            raise NotRestorable(f"{copy} is not a database of Trellis.")
        migrate(own)
        yield Candidate(own, file, database)
    finally:
        remove_database(file)
        lock.release()


def _close_wal(file: Path) -> None:
    with closing(sqlite.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _own_like(file: Path, model: Path) -> None:
    """Give a file the mode of another one, and its owner, where that is allowed and there is one."""
    with suppress(FileNotFoundError):
        kept = model.stat()
        file.chmod(kept.st_mode & 0o777)
        with suppress(PermissionError):
            os.chown(file, kept.st_uid, kept.st_gid)


def _sync(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
