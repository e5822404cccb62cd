"""The files of a SQLite database, and the locks that show which processes have it open.

Each process holds a lock on a file beside the database. SQLite's own locks cannot show who has it open: between two transactions a
service holds none that another process could safely test. The lock file is never deleted when a lock is released, since two
processes could then lock two different files of the same name.
"""

import fcntl
import os
import threading
from contextlib import suppress
from errno import EINVAL
from pathlib import Path
from typing import Final

from trellis.store import sqlite

_LOCK: Final = "-lock"  # suffix of the file that processes lock
_RESTORING: Final = ".restoring"  # suffix of the file that becomes the database in a restore
_KEEPS_OUT: Final = (
    "that one keeps others out: a `trellis backup restore`, or a process whose SQLite cannot share a database. Try again once it "
    "has ended."
)


class DatabaseInUse(Exception):
    """Another process has or may have the database open, which the intended use does not allow; the text is for the operator."""


class FileLock:
    """This process's lock on a database: shared with other processes, or exclusive if this SQLite can lose writes when shared."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._descriptor: int | None = None
        self._guard = threading.Lock()  # several threads may open their first connections at the same time

    def share(self) -> bool:
        """Lock the database for use by this process, unless it is locked already or does not exist; return whether it was locked.

        Raises DatabaseInUse.
        """
        with self._guard:
            if self._descriptor is None and self._database.exists():
                try:
                    descriptor = _open_lock(self._database)
                except OSError:  # no file can be created in the folder: SQLite cannot use a database there either, and reports why
                    return False
                if bug := sqlite.describe_wal_reset_bug():
                    self._lock(descriptor, fcntl.LOCK_EX, f"only one process may use it: {bug}")
                else:
                    self._lock(descriptor, fcntl.LOCK_SH, _KEEPS_OUT)
                return True
        return False

    def take(self) -> None:
        """Lock all other processes out of the database. Raises DatabaseInUse, or OSError if the lock file cannot be opened."""
        descriptor = _open_lock(self._database)
        self._lock(descriptor, fcntl.LOCK_EX, "it must not be: stop the service and every other `trellis` command first.")

    def release(self) -> None:
        """Release the lock if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, descriptor: int, how: int, why: str) -> None:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise DatabaseInUse(f"The database {self._database} is in use by another process, and {why}") from None
        self._descriptor = descriptor


def _open_lock(database: Path) -> int:
    """Open the lock file of a database, or of a link's target. A new file can be used by whoever may use the database.

    Raises OSError if none can be created, and DatabaseInUse if there is one that cannot be opened.
    """
    lock = lock_file(Path(os.path.realpath(database)) if database.is_symlink() else database)
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        try:
            return os.open(lock, os.O_RDONLY)
        except OSError as error:  # without it, this process would be seen by nobody, and see nobody
            raise DatabaseInUse(f"The database {database} cannot be used: {lock} cannot be opened: {error.strerror}.") from None
    try:
        kept = database.stat()
        os.fchmod(descriptor, kept.st_mode & 0o666)
    except FileNotFoundError:
        kept = lock.parent.stat()
    with suppress(PermissionError):
        os.fchown(descriptor, kept.st_uid, kept.st_gid)
    return descriptor


# --- the files -------------------------------------------------------------------------------------------------------


def lock_file(database: Path) -> Path:
    """Return the file that processes lock while they use a database."""
    return database.with_name(database.name + _LOCK)


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
    real = sqlite.find_real_file(database)
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
    file = restoring_file(sqlite.find_real_file(database))
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
