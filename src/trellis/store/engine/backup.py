"""A copy of a SQLite database, made while it is in use."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

_PAGES: Final = 2048  # copied at a time: 8 MiB of the usual pages


def backup(source: Path, target: Path, progress: Callable[[int, int], None] = lambda _done, _all: None) -> None:
    """Copy a SQLite database as it is now, while others read and write it. Only the owner may read the copy (mode 0600).

    `progress` is called with the number of pages copied and of all pages. Raises FileExistsError when `target` exists, OSError
    when it cannot be written, sqlite3.Error when the database cannot be read. No incomplete copy stays.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(source, isolation_level=None)) as old, closing(sqlite3.connect(target)) as new:
            # A snapshot held open: without it, every write of another connection would start the copy again.
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
            old.backup(new, pages=_PAGES, progress=lambda _, left, pages: progress(pages - left, pages))
            old.execute("ROLLBACK")
            new.execute(
                "PRAGMA journal_mode=DELETE"
            ).fetchone()  # a single file without a WAL; whoever opens it first sets WAL mode
        with target.open("rb") as copy:
            os.fsync(copy.fileno())
    except BaseException:
        for suffix in ("", "-journal", "-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        raise
