"""What is wrong with a database: SQLite's file is read-only, damaged, taken away or its disk is full, PostgreSQL accepts no writes.

Such a fault refuses what ran, with its reason, and closes the connection that met it, so that the next one finds the database as it
is then. A fault lasts until something could be written again; damage lasts until the process ends.
"""

import logging
import os
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from trellis.sentences import Sentence, say
from trellis.store import sqlite

log = logging.getLogger(__name__)

_DAMAGE: Final = {11, 26}  # SQLITE_CORRUPT, SQLITE_NOTADB
NO_WRITES: Final = "accepts no writes: its server is a standby, or was set to read-only."
READ_ONLY: Final = "25006"  # PostgreSQL's code for a write to a server that accepts none
_LACKING: Final = {"42P01", "42703"}  # for a table or column that is not there
_LACKING_SQLITE: Final = ("no such table", "no such column")


class FileGone(Exception):
    """The database's file, or its WAL, is no longer the one that a connection has open."""

    def __init__(self) -> None:
        super().__init__("its file or its -wal was removed or replaced while it was open.")


class Faults:
    """The fault of a database that was met last, for this process. `file` is that of SQLite."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._is_lasting = False
        self._told: set[str] = set()  # reasons that the log has since something could be written: open connections meet other ones
        self.reason: str | None = None

    def record(self, error: BaseException) -> str | None:
        """Keep the fault that an error tells of; return what to say of it, None if it tells of none."""
        if (reason := describe_fault(error, self._file)) is None:
            return None
        if reason not in self._told:
            self._told.add(reason)
            log.error("%s", reason)
        if not self._is_lasting:
            self.reason, self._is_lasting = reason, sqlite.result_code(_cause(error)) in _DAMAGE
        return reason

    def record_success(self) -> None:
        """Note that something was written. To be called while there is a reason. A full disk may take a little, and stays full."""
        if not self._is_lasting and self.reason is not None and not (self._file is not None and sqlite.is_disk_full(self._file)):
            self.reason = None
            self._told.clear()
            log.warning("The database can be written to again.")


def describe_fault(error: BaseException, file: Path | None) -> str | None:
    """Say what is wrong with a database, without the name of its file; None for an error that tells of no fault."""
    cause = _cause(error)
    if getattr(cause, "sqlstate", None) == READ_ONLY:
        return f"The database {NO_WRITES}"
    if isinstance(cause, FileGone):
        return f"The database cannot be used: {cause}"
    if (meaning := sqlite.explain(cause, file)) is None or not meaning.is_fault:
        return None
    return f"The database {meaning.what}."


def describe_lack(error: BaseException) -> Sentence | None:
    """Say that a database is not one of this release, such as an empty one; None for an error that does not tell of it."""
    cause = _cause(error)
    if getattr(cause, "sqlstate", None) in _LACKING or (
        isinstance(cause, sqlite.StatementError) and str(cause).startswith(_LACKING_SQLITE)
    ):
        return say("The database lacks what this release needs: it is another one, or is being restored.")
    return None


def is_fault(error: BaseException) -> bool:
    """Return whether an error tells of a fault, so that the connection that met it is of no further use."""
    return describe_fault(error, None) is not None


def _cause(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, sa.exc.DBAPIError) and error.orig is not None else error


class OpenFile:
    """The file that a connection has open, and its WAL: what stands under their names must stay the same."""

    def __init__(self, raw: Any) -> None:
        raw.execute("PRAGMA schema_version").fetchone()  # a first read, which opens the WAL
        self._names = (name := raw.execute("PRAGMA database_list").fetchone()[2], f"{name}-wal")
        self._opened = self._look()

    def check(self) -> None:
        """Raise FileGone if something else, or nothing, stands under the names."""
        if self._look() != self._opened:
            raise FileGone

    def _look(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [os.stat(name) for name in self._names]  # noqa: PTH116  # half the price, in each commit
        except OSError:
            raise FileGone from None
        return tuple((one.st_dev, one.st_ino) for one in found)
