"""Which processes have a SQLite database open: each holds a lock on a file beside it for as long as it does.

SQLite's own locks do not tell: a service holds none between two transactions that another process could ask for safely. The file
is left where it is, since deleting it would let two processes lock two files of one name.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from trellis.store.sqlite import describe_wal_reset_bug

_SUFFIX: Final = "-lock"


class DatabaseInUse(Exception):
    """Another process has the database open, and this use of it allows none; the text is a sentence for the operator."""


def lock_file(database: Path) -> Path:
    """Return the file on which those who use a database hold a lock."""
    return database.with_name(database.name + _SUFFIX)


class FileLock:
    """This process's share in a database, which others can have too; with a SQLite that loses writes then, nobody else's."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._descriptor: int | None = None

    def share(self) -> None:
        """Take part in using the database, unless it already does. Raises DatabaseInUse."""
        if self._descriptor is None and self._database.exists():
            try:
                descriptor = _open_lock(self._database)
            except OSError:  # a folder in which nothing can be made: SQLite cannot use a database there either, and says why
                return
            bug = describe_wal_reset_bug()
            self._lock(descriptor, fcntl.LOCK_EX if bug else fcntl.LOCK_SH, f"only one process may use it: {bug}")

    def take(self) -> None:
        """Keep all other processes from using the database. Raises DatabaseInUse, and OSError if that cannot be found out."""
        descriptor = _open_lock(self._database)
        self._lock(descriptor, fcntl.LOCK_EX, "it must not be: stop the service and every other `trellis` command first.")

    def release(self) -> None:
        """End the use of the database."""
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
    """Open the lock of a database, or of what a link to one leads to. Whoever may use the database may use a new lock too."""
    lock = lock_file(Path(os.path.realpath(database)) if database.is_symlink() else database)
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return os.open(lock, os.O_RDONLY)
    try:
        kept = database.stat()
        os.fchmod(descriptor, kept.st_mode & 0o666)
    except FileNotFoundError:
        kept = lock.parent.stat()
    with suppress(PermissionError):
        os.fchown(descriptor, kept.st_uid, kept.st_gid)
    return descriptor
