"""The SQLite library in use: the one bundled with APSW if APSW is installed, otherwise the interpreter's.

All files are opened with this one library. Two SQLite libraries in one process would not see each other's locks on a file: when
one closes the file, the other loses its locks, and a WAL in use may be deleted (https://sqlite.org/howtocorrupt.html).
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from trellis.sentences import Sentence, mark, say

_SPILLED_FROM: Final = 127 * 1024  # bytes; SQLite writes at most one byte less than 128 KiB at once, and fails with a larger bound

_library: Any
try:
    import apsw as _library

    HAS_APSW: Final = True
    # Within a savepoint SQLite saves each page before changing it: in memory up to 64 KiB, then in a file. One new node exceeds
    # 64 KiB. The library accepts another bound only while no connection is open.
    if not _library.connections():
        _library.shutdown()
        _library.config(_library.SQLITE_CONFIG_STMTJRNL_SPILL, _SPILLED_FROM)
        _library.initialize()
except ImportError:  # APSW has no wheel for this machine: see pyproject.toml
    import sqlite3 as _library

    HAS_APSW: Final = False  # type: ignore[misc]  # only one of the two assignments runs

_CACHED_STATEMENTS: Final = 512  # per connection
_STEPS: Final = 20_000  # of SQLite's virtual machine, which runs them in a few milliseconds
_TRY: Final = 50  # milliseconds of one try to empty the write-ahead log
_BUSY_TIMEOUT: Final = 5  # seconds that a statement waits for the locks of other connections, unless a pragma sets another time

Error: Final[type[Exception]] = _library.Error
# The exception for a statement that the library cannot run, such as one on a table that does not exist.
StatementError: Final[type[Exception]] = _library.SQLError if HAS_APSW else _library.OperationalError
# The exceptions for a database that is busy, out of reach or damaged, and for errors in a statement.
FAILURES: Final[tuple[type[Exception], ...]] = (
    tuple(getattr(_library, f"{name}Error") for name in (
        "SQL", "Busy", "Locked", "IO", "ReadOnly", "CantOpen", "Full", "Permissions", "Protocol", "Interrupt", "Corrupt", "NotADB",
        "NoMem",
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
        """Whether commits can be lost if two connections write and checkpoint at once (https://sqlite.org/wal.html#walresetbug)."""
        is_backport = (3, 44, 6) <= self < (3, 45, 0) or (3, 50, 7) <= self < (3, 51, 0)
        return (3, 7, 0) <= self < (3, 51, 3) and not is_backport


def library_version() -> Version:
    """Return the version of the library in use."""
    text = _library.sqlite_lib_version() if HAS_APSW else _library.sqlite_version
    major, minor, patch = text.split(".")[:3]
    return Version(int(major), int(minor), int(patch))


def describe_wal_reset_bug() -> str | None:
    """Describe the WAL-reset bug and what to do about it; None if the library in use does not have it."""
    if not (version := library_version()).has_wal_reset_bug:
        return None
    return (
        f"SQLite {version} can lose acknowledged writes when two processes use one database (its WAL-reset bug). "
        "Install the Python package apsw, or a Python that brings SQLite 3.51.3 or newer."
    )


def connect(file: Path | str, *, create: bool = False, factory: Any = None) -> Any:
    """Open a database. `create` allows the file to be created; `factory` is the class of the connection, for APSW only.

    Statements run outside a transaction unless one was begun explicitly. Only one thread at a time may use the connection.

    Its SQL has a function `is_utf8`, which SQLite does not have: it returns whether bytes are UTF-8. It is there from the start,
    since a function that is added later has SQLite compile every statement of the connection anew.
    """
    # A URI, since it can express file names that are not UTF-8.
    address = f"file://{quote(os.fsencode(Path(file).absolute()))}"
    if HAS_APSW:
        flags = _library.SQLITE_OPEN_URI | _library.SQLITE_OPEN_READWRITE | (_library.SQLITE_OPEN_CREATE if create else 0)
        connection = (factory or _library.Connection)(address, flags=flags, statementcachesize=_CACHED_STATEMENTS)
        connection.set_busy_timeout(_BUSY_TIMEOUT * 1000)
        connection.create_scalar_function("is_utf8", _is_utf8, 1, deterministic=True)
        return connection
    connection = _library.connect(
        f"{address}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )
    connection.create_function("is_utf8", 1, _is_utf8, deterministic=True)
    return connection


def find_file(connection: Any) -> str:
    """Return the name of the file of a connection."""
    # As bytes, since the names of folders need not be UTF-8.
    (name,) = connection.execute("SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'").fetchone()
    return os.fsdecode(name)


def use_temporary_files(connection: Any) -> None:
    """Let a connection use files for temporary data beyond a certain size: beside the database, or where SQLITE_TMPDIR says.

    By itself SQLite would take /var/tmp or another folder of the system, which may be full or read-only.
    """
    connection.execute("PRAGMA temp_store=FILE")
    if not os.environ.get("SQLITE_TMPDIR"):
        folder = str(Path(find_file(connection)).parent).replace("'", "''")
        # The name need not be UTF-8. And if the folder cannot be written to, nor can the database, which the next write reports.
        with suppress(UnicodeEncodeError, *FAILURES):
            connection.execute(f"PRAGMA temp_store_directory='{folder}'")


def call_often(connection: Any, function: Callable[[], None]) -> None:
    """Call a function every few milliseconds while a statement of a connection runs; what it raises ends the statement.

    The interpreter's library would lose what the function raises: with it, nothing is called.
    """

    def go_on() -> bool:
        function()
        return False  # the statement is not to be ended

    if HAS_APSW:
        connection.set_progress_handler(go_on, _STEPS)


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def total_changes(connection: Any) -> int:
    """Return how many rows a connection has changed since it was opened."""
    return int(connection.total_changes() if HAS_APSW else connection.total_changes)


def changed_rows(cursor: Any) -> int:
    """Return how many rows the last statement of a cursor has changed."""
    return int(cursor.connection.changes() if HAS_APSW else cursor.rowcount)


def empty_wal(connection: Any, seconds: float) -> bool:
    """Move the content of the write-ahead log into the database and empty its file; return False if readers kept it from that.

    This waits at most so long for those who read what is to be overwritten, and keeps other writes waiting. Others read on.
    """
    until = monotonic() + seconds
    (usual,) = connection.execute("PRAGMA busy_timeout").fetchone()
    # In short tries: new readers may share the very lock that a try waits for, one after the other, so that it never ends.
    connection.execute(f"PRAGMA busy_timeout={_TRY}").fetchall()
    try:
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if monotonic() >= until:
                return False
        return True
    finally:
        connection.execute(f"PRAGMA busy_timeout={usual}").fetchall()


def result_code(error: BaseException) -> int | None:
    """Return the primary result code of an error (https://sqlite.org/rescode.html); None if the error is not SQLite's."""
    if not isinstance(error, Error):
        return None
    code = getattr(error, "result", None) if HAS_APSW else getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that there is too little memory, in this library or in Python."""
    return isinstance(error, MemoryError) or result_code(error) == _NO_MEMORY


THE_DATABASE: Final = say("The database")


class Meaning(NamedTuple):
    """The meaning of a result code: what is wrong with the database, what to do, and whether its file is at fault."""

    text: str  # of a sentence about the `database`
    advice: str
    is_fault: bool = True

    def describe(self, database: str = THE_DATABASE) -> Sentence:
        """Return a sentence that says what is wrong with the database, by this name."""
        return say(self.text, database=database)


_DISK_FULL: Final = Meaning(mark("{database} cannot grow: the disk is full."), "Free some space; nothing has to be restarted.")
_CLOSED: Final = mark("{database} cannot be opened.")
_LOCKED: Final = Meaning(
    mark("{database} is locked by another program for longer than TRELLIS_BUSY_TIMEOUT."), "Try again.", is_fault=False
)
_DAMAGED: Final = 11
_NO_DATABASE: Final = 26
_OR_READ_ONLY: Final = "and whether the file system has become read-only"
_MEANINGS: Final[Mapping[int, Meaning]] = {
    3: Meaning(_CLOSED, f"Check who may read and write it, {_OR_READ_ONLY}."),
    5: _LOCKED,
    6: _LOCKED,
    8: Meaning(mark("{database} cannot be written to."), f"Check who may write to the file and its folder, {_OR_READ_ONLY}."),
    10: Meaning(mark("{database} cannot be read or written: the disk reports an error."), "Check the system log."),
    _DAMAGED: Meaning(mark("{database} is damaged."), "Restore a backup."),
    13: _DISK_FULL,
    14: Meaning(_CLOSED, f"Check that its folder exists, who may read and write it, {_OR_READ_ONLY}."),
    _NO_DATABASE: Meaning(mark("{database} is not a SQLite database."), ""),
}
_NO_MEMORY: Final = 7
_IO_ERROR: Final = 10
_NOT_WRITTEN: Final = {778, 1034, 1290, 1546}  # SQLITE_IOERR_WRITE, _FSYNC, _DIR_FSYNC, _TRUNCATE
_FULL: Final = 1 << 16  # bytes; with fewer free, an input/output error is taken for a full disk


def explain(error: BaseException, file: Path | None) -> Meaning | None:
    """Return the meaning of an error for the database in a file; None if it is not SQLite's, or if a statement is at fault."""
    if (code := result_code(error)) is None:
        return None
    if code == _IO_ERROR and file is not None and is_disk_full(file):
        return _DISK_FULL
    return _MEANINGS.get(code)


def is_about_room(error: BaseException, file: Path) -> bool:
    """Return whether an error means that the disk of a file is full."""
    return explain(error, file) is _DISK_FULL


def is_about_content(error: BaseException) -> bool:
    """Return whether an error means that a file is damaged, or that it is not a database."""
    return result_code(error) in {_DAMAGED, _NO_DATABASE}


def is_about_writing(error: BaseException) -> bool:
    """Return whether an error means that the disk, or a quota on it, has kept something from being written."""
    code = getattr(error, "extendedresult", None) if HAS_APSW else getattr(error, "sqlite_errorcode", None)
    return isinstance(error, Error) and code in _NOT_WRITTEN


def find_real_file(file: Path | str) -> Path:
    """Return the file of a database after following links: its WAL is beside that file, and its disk is the one that fills up."""
    return Path(os.path.realpath(file))


def is_disk_full(file: Path) -> bool:
    """Return whether the disk of a database has less than 64 KiB free; False if that cannot be determined."""
    try:
        found = os.statvfs(find_real_file(file).parent)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _FULL


def copy(source: Any, target: Any, pages: int, progress: Callable[[int, int], None]) -> None:
    """Copy the database of one connection over the database of another, `pages` pages at a time.

    `progress` is called with the number of pages copied and the number of all pages.
    """
    if not HAS_APSW:
        source.backup(target, pages=pages, progress=lambda _, left, total: progress(total - left, total))
        return
    with target.backup("main", source, "main") as running:
        while not running.done:
            running.step(pages)
            progress(running.page_count - running.remaining, running.page_count)
