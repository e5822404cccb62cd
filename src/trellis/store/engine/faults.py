"""Faults of a database: SQLite's file is read-only, damaged or gone; PostgreSQL accepts no writes; or the disk is full.

The call that meets a fault is refused with its reason, and its connection is closed, so that the next connection finds the database
as it is by then. (A full disk of PostgreSQL's server closes none.) A fault lasts until a write succeeds; damage lasts until the
process ends.
"""

import logging
import os
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Final

import sqlalchemy as sa

from trellis.errors import NO_MEMORY
from trellis.sentences import Sentence, mark, say
from trellis.store import sqlite

log = logging.getLogger(__name__)

_EVERY: Final = 60.0  # seconds between two lines in the log about the same fault, at least
_QUIET: Final = 10.0  # seconds without a failure after which PostgreSQL's disk may have room again
NO_WRITES: Final = mark("{database} accepts no writes: its server is a standby, or was set to read-only.")
READ_ONLY: Final = "25006"  # PostgreSQL's code for a write to a server that accepts none
FULL: Final = "53100"  # PostgreSQL's code for a full disk
FORBIDDEN: Final = "42501"  # PostgreSQL's code for a right that the account lacks
_LACKING: Final = {"42P01", "42703"}  # PostgreSQL's codes for a table or column that does not exist
_LACKING_SQLITE: Final = ("no such table", "no such column")


class FileGone(Exception):
    """The database's file, or its WAL, is no longer the one that a connection has open."""

    def __init__(self) -> None:
        super().__init__("its file or its -wal was removed or replaced while it was open.")


class Faults:
    """The fault of a database that this process met last. `file` is SQLite's file, None for PostgreSQL."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._is_lasting = False
        self._told: set[str] = set()  # reasons logged since the last fault ended: several connections may meet different ones
        self._told_at: dict[str, float] = {}  # when each was logged last, on the monotonic clock
        self._full_at = -inf  # when something last failed because PostgreSQL's disk is full, on the monotonic clock
        self.reason: str | None = None

    def record(self, error: BaseException) -> str | None:
        """Record the fault that an error reveals, and return its reason as a sentence; None if the error is not a fault."""
        if (reason := describe_fault(error, self._file)) is None:
            return None
        now = monotonic()
        if _is_full(error):
            self._full_at = now
        if reason not in self._told and now - self._told_at.get(reason, -inf) >= _EVERY:  # it may come and go all the time
            self._told.add(reason)
            self._told_at[reason] = now
            log.error("%s", reason)
        if not self._is_lasting:
            self.reason, self._is_lasting = reason, sqlite.is_about_content(_cause(error))
        return reason

    def record_success(self) -> None:
        """Note that a write succeeded, which ends a fault other than damage. Call it while there is a reason.

        A disk that is still full does not end the fault: small writes may succeed on it.
        """
        is_full = monotonic() - self._full_at < _QUIET if self._file is None else sqlite.is_disk_full(self._file)
        if not self._is_lasting and self.reason is not None and not is_full:
            self.reason = None
            if self._told:
                self._told.clear()
                log.warning("The database can be written to again.")


def describe_fault(error: BaseException, file: Path | None) -> str | None:
    """Describe the fault that an error reveals in a sentence, without the name of the file; None if the error is not a fault."""
    cause = _cause(error)
    if getattr(cause, "sqlstate", None) == READ_ONLY:
        return say(NO_WRITES, database=sqlite.THE_DATABASE)
    if _is_full(error):
        return say("The disk of the database server is full.")
    if isinstance(cause, FileGone):
        return say("The database cannot be used: its file or its -wal was removed or replaced while it was open.")
    if (meaning := sqlite.explain(cause, file)) is None or not meaning.is_fault:
        return None
    return meaning.describe()


def describe_lack(error: BaseException) -> Sentence | None:
    """Report that a database lacks a table or column of this release, as an empty one does, or PostgreSQL a right.

    It also reports a lack of memory in this process. None if the error is another one.
    """
    cause = _cause(error)
    if sqlite.is_out_of_memory(cause):
        return NO_MEMORY
    if getattr(cause, "sqlstate", None) == FORBIDDEN:
        return say("The service's account at the database lacks a right, which the log names.")
    if getattr(cause, "sqlstate", None) in _LACKING or (
        isinstance(cause, sqlite.StatementError) and str(cause).startswith(_LACKING_SQLITE)
    ):
        return say("Tables or columns that this release needs are missing: this is the wrong database, or it is being restored.")
    return None


def is_fault(error: BaseException) -> bool:
    """Return whether an error reveals a fault, so that the connection that met it can no longer be used."""
    return describe_fault(error, None) is not None and not _is_full(error)


def _is_full(error: BaseException) -> bool:
    """Return whether PostgreSQL lacked room, which leaves its connection as it is."""
    return getattr(_cause(error), "sqlstate", None) == FULL


def _cause(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, sa.exc.DBAPIError) and error.orig is not None else error


class OpenFile:
    """The file that a connection has open, and its WAL. Their names must go on referring to the same two files.

    `wal_size` is the size of the WAL in bytes when this was checked last.
    """

    def __init__(self, raw: Any) -> None:
        raw.execute("PRAGMA schema_version").fetchone()  # a first read, which opens the WAL
        self._names = (name := sqlite.find_file(raw), f"{name}-wal")
        self._opened = self._look()

    def check(self) -> None:
        """Raise FileGone if one of the files was removed or replaced."""
        if self._look() != self._opened:
            raise FileGone

    def _look(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [os.stat(name) for name in self._names]  # noqa: PTH116  # half the cost of pathlib, in each commit
        except OSError:
            raise FileGone from None
        self.wal_size = found[1].st_size
        return tuple((one.st_dev, one.st_ino) for one in found)
