"""A copy of a SQLite database, made while it is in use, and the verification of such a file."""

import os
from collections.abc import Callable
from contextlib import closing
from errno import ENOSPC
from pathlib import Path
from typing import Any, Final

from trellis.store import sqlite
from trellis.store.engine.file_lock import lock_file

_PAGES: Final = 2048  # copied at a time: 8 MiB of the usual pages
_MAX_TOLD: Final = 5  # problems of a damaged file

Progress = Callable[[int, int], None]


class Damaged(Exception):
    """A database is not sound: the text says how."""


def backup(source: Path, target: Path, progress: Progress = lambda _done, _all: None) -> None:
    """Copy a SQLite database as it is now, while others read and write it. Only the owner may read the copy (mode 0600).

    What was written is verified. `progress` is called with the number of pages copied and of all pages. Raises FileExistsError
    when `target` exists, OSError when it cannot be written, sqlite.Error when the database cannot be read, Damaged when the copy is
    not sound, as when the database is not. No incomplete or damaged copy stays.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite.connect(source)) as old, closing(sqlite.connect(target)) as new:
            # A snapshot held open: without it, every write of another connection would start the copy again.
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
            sqlite.copy(old, new, _PAGES, progress)
            old.execute("ROLLBACK")
            # A single file without a WAL; whoever opens it first sets WAL mode.
            new.execute("PRAGMA journal_mode=DELETE").fetchone()
        with target.open("rb") as copy:
            os.fsync(copy.fileno())
        verify(target)
    except BaseException as error:
        is_full = sqlite.is_about_room(error, target)  # asked before what was written is gone
        remove_database(target)
        if is_full:  # the disk of the copy: nothing was written to the database
            raise OSError(ENOSPC, os.strerror(ENOSPC), str(target)) from error
        raise


def verify(file: Path) -> None:
    """Read a whole database, its indexes too. Raises Damaged, and sqlite.Error where it cannot be read at all."""
    with closing(sqlite.connect(file)) as connection:
        found = [str(row[0]) for row in _integrity(connection)]
    if found != ["ok"]:
        raise Damaged("; ".join(found))


def _integrity(connection: Any) -> list[Any]:
    rows: list[Any] = connection.execute(f"PRAGMA integrity_check({_MAX_TOLD})").fetchall()
    return rows


def database_files(file: Path) -> tuple[Path, ...]:
    """Return the files that may stand beside a database and belong to its content, and last the database itself."""
    return tuple(file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-journal", ""))


def remove_database(file: Path) -> None:
    """Delete a database that nobody uses, with what stands beside it."""
    for part in (*database_files(file), lock_file(file)):
        part.unlink(missing_ok=True)
