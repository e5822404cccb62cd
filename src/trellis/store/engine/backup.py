"""Copying a SQLite database while it is in use, and verifying a database file."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from errno import EINVAL, EIO, ENOSPC
from pathlib import Path
from typing import Any, Final

from trellis.store import sqlite
from trellis.store.engine.file_lock import lock_file

_PAGES: Final = 2048  # copied at a time: 8 MiB of the usual pages
_RESTORING: Final = ".restoring"  # suffix of the file that becomes the database in a restore
_MAX_TOLD: Final = 5  # problems reported for a damaged file

Progress = Callable[[int, int], None]


class Damaged(Exception):
    """A database is damaged; the text describes the damage."""


def backup(source: Path, target: Path, progress: Progress = lambda _done, _all: None) -> None:
    """Copy a SQLite database as it is now, while others read and write it. Only the owner may read the copy (mode 0600).

    The copy is verified. `progress` is called with the number of pages copied so far and the number of all pages. Raises
    FileExistsError if `target` exists, OSError if it cannot be written, sqlite.Error if the database cannot be read, and Damaged if
    the copy is damaged, which it is if the database is. An incomplete or damaged copy is removed.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite.connect(source)) as old, closing(sqlite.connect(target)) as new:
            # Hold a snapshot open: without it, every write of another connection would restart the copy.
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
            sqlite.copy(old, new, _PAGES, progress)
            old.execute("ROLLBACK")
            # Leave a single file without a WAL; whoever opens the copy first sets WAL mode again.
            new.execute("PRAGMA journal_mode=DELETE").fetchone()
        with target.open("rb") as copy:
            os.fsync(copy.fileno())
        verify(target)
    except BaseException as error:
        is_full = sqlite.is_about_room(error, target)  # checked before the copy is removed, which frees its space
        remove_database(target)
        if is_full or sqlite.is_about_writing(error):  # the copy: nothing was written to the database
            reason = ENOSPC if is_full else EIO
            raise OSError(reason, os.strerror(reason), str(target)) from error
        raise


def verify(file: Path) -> None:
    """Read a whole database, including its indexes. Raises Damaged, or sqlite.Error if the database cannot be read at all."""
    with closing(sqlite.connect(file)) as connection:
        sqlite.call_often(connection, lambda: None)  # Ctrl-C ends a statement only while Python runs something
        found = [str(row[0]) for row in _integrity(connection)]
    if found != ["ok"]:
        raise Damaged("; ".join(found))


def _integrity(connection: Any) -> list[Any]:
    rows: list[Any] = connection.execute(f"PRAGMA integrity_check({_MAX_TOLD})").fetchall()
    return rows


def database_files(file: Path) -> tuple[Path, ...]:
    """Return the files beside a database that hold part of its content if they exist, and last the database itself."""
    return tuple(file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-journal", ""))


def restoring_file(database: Path) -> Path:
    """Return the file beside a database that a restore works on until it becomes the database."""
    return database.with_name(database.name + _RESTORING)


def find_reserved(database: Path, file: Path) -> Path | None:
    """Return which file of a database a file is, following links; None if it is none of them. Raises OSError.

    A database's files are itself, those of SQLite and its locks beside it, and those that a restore uses there.
    """
    real = Path(os.path.realpath(database))
    for own in (real, restoring_file(real)):
        for part in (*database_files(own), lock_file(own)):
            if os.path.realpath(file) == str(part) or (part.exists() and file.exists() and part.samefile(file)):
                return part
    return None


def remove_database(file: Path) -> None:
    """Delete a database that nobody uses, with its files beside it."""
    for part in (*database_files(file), lock_file(file)):
        part.unlink(missing_ok=True)


def remove_unfinished(database: Path) -> None:
    """Delete what a killed restore has left beside a database, if this process may. The database's lock must keep restores out."""
    file = restoring_file(Path(os.path.realpath(database)))
    with suppress(OSError):
        if file.exists():
            remove_database(file)


def sync_folder(folder: Path) -> None:
    """Make durable what was created, renamed and deleted in a folder, where that is possible, as SQLite does. Raises OSError."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # files may be created in it, but nobody may list them
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(descriptor)
