"""The SQLite library that is used: the one that APSW brings where it is installed, or else the interpreter's.

All files are opened with that one library. Two of them in one process would not know of each other's locks on a file: when one
closes it, the locks of the other are gone, and a WAL that is in use may be deleted (https://sqlite.org/howtocorrupt.html).
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

_SPILLED_FROM: Final = 127 * 1024  # bytes; SQLite writes 128 KiB less one at once at most, and fails with a bound above that

_library: Any
try:
    import apsw as _library

    HAS_APSW: Final = True
    # Within a savepoint SQLite sets aside each page before it is changed: in a file from 64 KiB on, which one new node exceeds.
    # The library takes another bound only while nothing is open.
    if not _library.connections():
        _library.shutdown()
        _library.config(_library.SQLITE_CONFIG_STMTJRNL_SPILL, _SPILLED_FROM)
        _library.initialize()
except ImportError:  # there is no wheel for this machine: see pyproject.toml
    import sqlite3 as _library

    HAS_APSW: Final = False  # type: ignore[misc]  # one of the two is run

_CACHED_STATEMENTS: Final = 512  # per connection
_BUSY_TIMEOUT: Final = 5  # seconds for which a statement waits for the locks of others, unless a pragma says otherwise

Error: Final[type[Exception]] = _library.Error
# What it raises for a statement that it cannot run, such as one on a table that is not there.
StatementError: Final[type[Exception]] = _library.SQLError if HAS_APSW else _library.OperationalError
# What it raises when a database is busy, out of reach or damaged, beside errors in a statement.
FAILURES: Final[tuple[type[Exception], ...]] = (
    tuple(getattr(_library, f"{name}Error") for name in (
        "SQL", "Busy", "Locked", "IO", "ReadOnly", "CantOpen", "Full", "Permissions", "Protocol", "Interrupt", "Corrupt", "NotADB",
    )) if HAS_APSW else (_library.DatabaseError,)
)  # fmt: skip


class Version(NamedTuple):
    """A version of SQLite."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def has_wal_reset_bug(self) -> bool:
        """Whether commits can be lost when two connections write and checkpoint at once (https://sqlite.org/wal.html#walresetbug)."""
        is_backport = (3, 44, 6) <= self < (3, 45, 0) or (3, 50, 7) <= self < (3, 51, 0)
        return (3, 7, 0) <= self < (3, 51, 3) and not is_backport


def library_version() -> Version:
    """Return the version of the library that is used."""
    text = _library.sqlite_lib_version() if HAS_APSW else _library.sqlite_version
    major, minor, patch = text.split(".")[:3]
    return Version(int(major), int(minor), int(patch))


def describe_wal_reset_bug() -> str | None:
    """Say that the library that is used has the bug, and what to do; None if it does not have it."""
    if not (version := library_version()).has_wal_reset_bug:
        return None
    return (
        f"SQLite {version} can lose acknowledged writes when two processes use one database (its WAL-reset bug). "
        "Install the Python package apsw, or a Python that brings SQLite 3.51.3 or newer."
    )


def connect(file: Path | str, *, create: bool = False, factory: Any = None) -> Any:
    """Open a database; `create` makes the file if it is not there. `factory` is the class of the connection.

    Nothing is in a transaction until it begins one. One thread at a time may use the connection.
    """
    # An address, in which a name that is not UTF-8 can be written too.
    address = f"file://{quote(os.fsencode(Path(file).absolute()))}"
    if HAS_APSW:
        flags = _library.SQLITE_OPEN_URI | _library.SQLITE_OPEN_READWRITE | (_library.SQLITE_OPEN_CREATE if create else 0)
        connection = (factory or _library.Connection)(address, flags=flags, statementcachesize=_CACHED_STATEMENTS)
        connection.set_busy_timeout(_BUSY_TIMEOUT * 1000)
        return connection
    return _library.connect(
        f"{address}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )


def total_changes(connection: Any) -> int:
    """Return how many rows a connection has changed since it was opened."""
    return int(connection.total_changes() if HAS_APSW else connection.total_changes)


def changed_rows(cursor: Any) -> int:
    """Return how many rows the statement changed that a cursor has run."""
    return int(cursor.connection.changes() if HAS_APSW else cursor.rowcount)


def result_code(error: BaseException) -> int | None:
    """Return SQLite's primary result code of an error (https://sqlite.org/rescode.html); None for an error that is not SQLite's."""
    if not isinstance(error, Error):
        return None
    code = getattr(error, "result", None) if HAS_APSW else getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


class Meaning(NamedTuple):
    """What a result code means: what is wrong with the database, what to do, and whether that is about its file."""

    what: str
    advice: str
    is_fault: bool = True


_DISK_FULL: Final = Meaning("cannot grow: the disk is full", "Free some space; nothing has to be restarted.")
_MEANINGS: Final[Mapping[int, Meaning]] = {
    3: Meaning("cannot be opened", "Check who may read and write it."),
    5: Meaning("is locked by another program for longer than TRELLIS_BUSY_TIMEOUT", "Try again.", is_fault=False),
    6: Meaning("is locked by another program for longer than TRELLIS_BUSY_TIMEOUT", "Try again.", is_fault=False),
    8: Meaning("cannot be written to", "Check who may write to the file and its folder."),
    10: Meaning("cannot be read or written: the disk reports an error", "Check the system log."),
    11: Meaning("is damaged", "Restore a backup."),
    13: _DISK_FULL,
    14: Meaning("cannot be opened", "Check that its folder exists, and who may read and write it."),
    26: Meaning("is not a SQLite database", ""),
}
_IO_ERROR: Final = 10
_FULL: Final = 1 << 16  # bytes: where fewer are free, an error of input and output is one of room


def explain(error: BaseException, file: Path | None) -> Meaning | None:
    """Return what an error means for the database in a file; None for one that is not SQLite's, or that a statement caused."""
    if (code := result_code(error)) is None:
        return None
    if code == _IO_ERROR and file is not None and is_disk_full(file):
        return _DISK_FULL
    return _MEANINGS.get(code)


def is_about_room(error: BaseException, file: Path) -> bool:
    """Return whether an error says that there is no room for what is written to a file."""
    return explain(error, file) is _DISK_FULL


def find_real_file(file: Path | str) -> Path:
    """Return where a database is, whose name may be a link: there are its WAL and the disk that it needs."""
    return Path(os.path.realpath(file))


def is_disk_full(file: Path) -> bool:
    """Return whether there is next to no room where a database is."""
    try:
        found = os.statvfs(find_real_file(file).parent)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _FULL


def copy(source: Any, target: Any, pages: int, progress: Callable[[int, int], None]) -> None:
    """Copy the database of one connection over that of another, so many pages at a time.

    `progress` is called with the number of pages copied and of all pages.
    """
    if not HAS_APSW:
        source.backup(target, pages=pages, progress=lambda _, left, total: progress(total - left, total))
        return
    with target.backup("main", source, "main") as running:
        while not running.done:
            running.step(pages)
            progress(running.page_count - running.remaining, running.page_count)
