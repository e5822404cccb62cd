"""Replacing a SQLite database by a backup copy. The copy is verified and migrated before the old database is touched."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.backup.copy import backup
from trellis.store.condition import Condition, find_condition
from trellis.store.engine import FileLock, database_files, find_reserved, remove_database, restoring_file, sync_folder
from trellis.store.migrate import migrate


class NotRestorable(Exception):
    """The copy is not a database of Trellis, or it is from a newer release."""


@dataclass(frozen=True)
class Candidate:
    """A copy that is ready to become the database. `settings` open it for inspection before that."""

    settings: Settings
    file: Path
    database: Path

    def put_in_place(self) -> tuple[Path, ...]:
        """Make the copy the database. The files of the old database are renamed; return their new paths."""
        _close_wal(self.file)
        _own_like(self.file, self.database)
        with suppress(*sqlite.FAILURES):  # an old database that cannot be read is set aside as it is
            _close_wal(self.database)
        aside = _name_aside(self.database)
        is_alone = not any(part.exists() for part in database_files(self.database)[:-1])
        replace_old = self._replace_linked if is_alone and _link(self.database, aside) else self._replace_moved
        moved = replace_old(aside)
        sync_folder(self.database.parent)
        return moved

    def _replace_linked(self, aside: Path) -> tuple[Path, ...]:
        """Replace the old database, which is already linked as `aside`. If killed at any point, one of the two is in place."""
        try:
            sync_folder(self.database.parent)
            self.file.rename(self.database)
        except BaseException:
            if self.file.exists():  # otherwise it was renamed just before an interrupt
                aside.unlink()
            raise
        return (aside,)

    def _replace_moved(self, aside: Path) -> tuple[Path, ...]:
        """Move the old database before its WAL and journal, so that these never stand beside the new database."""
        moved = []
        try:
            for old, new in zip(reversed(database_files(self.database)), reversed(database_files(aside)), strict=True):
                if old.exists():
                    moved.append((old, new))
                    old.rename(new)
            sync_folder(self.database.parent)
            self.file.rename(self.database)
        except BaseException:
            for old, new in reversed(moved) if self.file.exists() else ():
                with suppress(FileNotFoundError):  # this is the file whose move failed
                    new.rename(old)
            raise
        return tuple(new for _, new in moved)


@contextmanager
def prepare_restore(
    settings: Settings, database: Path, copy: Path, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Iterator[Candidate]:
    """Duplicate a backup copy beside the database, verify it, and migrate it to the newest step.

    The database is locked meanwhile. Raises DatabaseInUse, NotRestorable, Damaged, OSError if the folder cannot be written to, and
    sqlite.Error if the copy cannot be read. The database is unchanged after any of them. Unless `put_in_place` was called, the
    duplicate is deleted at the end.
    """
    lock = FileLock(database)
    if database.is_symlink():
        database = sqlite.find_real_file(database)  # replace the file, not the link to it
    file = restoring_file(database)
    if (reserved := find_reserved(database, copy)) not in {None, sqlite.find_real_file(database)}:
        raise NotRestorable(f"The copy is {reserved}, the name of a file that SQLite or a restore may delete: rename it first.")
    lock.take()
    try:
        remove_database(file)  # left over from a restore that was killed
        try:
            backup(copy, file, progress)
        except sqlite.Error as error:
            if (meaning := sqlite.explain(error, copy)) is None or not sqlite.is_about_content(error):
                raise
            raise NotRestorable(f"{meaning.describe(str(copy))} Restore another copy.") from error
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
    """Return an unused name for the old database. Two restores within a second must not use the same name."""
    name = f"{database.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    aside = database.with_name(name)
    for number in count(2):
        if not any(os.path.lexists(part) for part in database_files(aside)):
            break
        aside = database.with_name(f"{name}-{number}")
    return aside


def _link(file: Path, name: Path) -> bool:
    """Link a file under a second name; return False if it does not exist or its file system has no hard links."""
    try:
        os.link(file, name)
    except OSError:
        return False
    return True


def _close_wal(file: Path) -> None:
    """Move the content of a database's WAL into its file. Raises one of sqlite.FAILURES if the database cannot be read."""
    with closing(sqlite.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _own_like(file: Path, model: Path) -> None:
    """Give a file the mode and owner of `model`, or the owner of its folder if `model` does not exist.

    The owner is changed only if this process may do so.
    """
    try:
        kept = model.stat()
        file.chmod(kept.st_mode & 0o777)
    except FileNotFoundError:  # root may be restoring a lost database, which the service must be able to use
        kept = model.parent.stat()
    with suppress(PermissionError):
        os.chown(file, kept.st_uid, kept.st_gid)
