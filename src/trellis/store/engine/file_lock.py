"""Locks that show which processes have a SQLite database open: each process holds one on a file beside the database.

SQLite's own locks cannot show this: between two transactions a service holds none that another process could safely test. The lock
file is never deleted when a lock is released, since two processes could then lock two different files of the same name.
"""

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from trellis.store.sqlite import describe_wal_reset_bug

_SUFFIX: Final = "-lock"
_KEEPS_OUT: Final = (
    "that one keeps others out: a `trellis backup restore`, or a process whose SQLite cannot share a database. Try again once it "
    "has ended."
)


class DatabaseInUse(Exception):
    """Another process has or may have the database open, which the intended use does not allow; the text is for the operator."""


def lock_file(database: Path) -> Path:
    """Return the file that processes lock while they use a database."""
    return database.with_name(database.name + _SUFFIX)


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
                if bug := describe_wal_reset_bug():
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
