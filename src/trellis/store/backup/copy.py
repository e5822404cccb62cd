"""Copying a SQLite database while it is in use, and verifying a database file."""

import os
from collections.abc import Callable
from contextlib import closing
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any, Final

from trellis.store import sqlite
from trellis.store.engine import remove_database

_PAGES: Final = 2048  # copied at a time: 8 MiB of the usual pages
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
