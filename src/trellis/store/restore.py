"""A SQLite database replaced by a copy of it, which is made ready before the old one is touched."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
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
        """Make it the database. The old one is set aside with all that belongs to it: return where its files are now."""
        _close_wal(self.file)
        _own_like(self.file, self.database)
        with suppress(*sqlite.FAILURES):  # one that cannot be read is set aside as it is
            _close_wal(self.database)
        aside = _name_aside(self.database)
        is_alone = not any(part.exists() for part in database_files(self.database)[:-1])
        replace_old = self._replace_linked if is_alone and _link(self.database, aside) else self._replace_moved
        moved = replace_old(aside)
        _sync(self.database.parent)
        return moved

    def _replace_linked(self, aside: Path) -> tuple[Path, ...]:
        """Replace an old database that has a second name by now: whenever this is killed, one of the two is in place."""
        try:
            _sync(self.database.parent)
            self.file.rename(self.database)
        except BaseException:
            aside.unlink()
            raise
        return (aside,)

    def _replace_moved(self, aside: Path) -> tuple[Path, ...]:
        """Move the old database first and the files beside it next, so that no file of one is ever found beside the other."""
        moved = []
        try:
            for old, new in zip(reversed(database_files(self.database)), reversed(database_files(aside)), strict=True):
                if old.exists():
                    moved.append((old, new))
                    old.rename(new)
            _sync(self.database.parent)
            self.file.rename(self.database)
        except BaseException:
            for old, new in reversed(moved):
                with suppress(FileNotFoundError):  # it is this one that was not moved
                    new.rename(old)
            raise
        return tuple(new for _, new in moved)


@contextmanager
def prepare_restore(
    settings: Settings, database: Path, copy: Path, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Iterator[Candidate]:
    """Copy a copy beside the database, verify it, and bring it to the newest step; nobody else can use the database meanwhile.

    Raises DatabaseInUse, NotRestorable, Damaged, OSError when nothing can be written there, and sqlite.Error for a copy that cannot
    be read. Whatever is raised, the database is as it was. What was not put in place is deleted.
    """
    lock = FileLock(database)
    if database.is_symlink():
        database = Path(os.path.realpath(database))  # what the link leads to is replaced, not the link
    file = database.with_name(database.name + _NEW)
    lock.take()
    try:
        remove_database(file)  # what a restore that was killed has left
        backup(copy, file, progress)
        own = replace(settings, database_url=f"sqlite:///{file}")
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


def _name_aside(database: Path) -> Path:
    """Return where nothing is yet: two restores within a second must not set aside two databases under one name."""
    name = f"{database.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    aside = database.with_name(name)
    for number in count(2):
        if not any(os.path.lexists(part) for part in database_files(aside)):
            break
        aside = database.with_name(f"{name}-{number}")
    return aside


def _link(file: Path, name: Path) -> bool:
    """Give a file a second name, if there is one and its file system can do that."""
    try:
        os.link(file, name)
    except OSError:
        return False
    return True


def _close_wal(file: Path) -> None:
    """Bring what stands beside a database into it. Raises one of sqlite.FAILURES if it cannot be read."""
    with closing(sqlite.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _own_like(file: Path, model: Path) -> None:
    """Give a file the mode and owner of another one; if there is none, the owner of the folder. The owner where that is allowed."""
    try:
        kept = model.stat()
        file.chmod(kept.st_mode & 0o777)
    except FileNotFoundError:  # root restores what was lost, and the service has to be able to use it
        kept = model.parent.stat()
    with suppress(PermissionError):
        os.chown(file, kept.st_uid, kept.st_gid)


def _sync(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
