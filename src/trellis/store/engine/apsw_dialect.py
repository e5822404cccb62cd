"""SQLAlchemy's dialect for SQLite over APSW.

APSW exposes SQLite's own API, not that of PEP 249: it never begins a transaction by itself. This module adds what SQLAlchemy needs
and APSW lacks.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

import apsw
from sqlalchemy.dialects.sqlite.base import SQLiteExecutionContext
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from trellis.store.sqlite import FAILURES, connect, library_version


class Cursor(apsw.Cursor):
    """A cursor that keeps the columns of its last statement, even after that has ended, and the number of rows that it changed."""

    arraysize = 1
    description: Any = None
    rowcount = -1

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.exec_trace = _describe  # type: ignore[assignment]  # not a method: the cursor would refer to itself

    @property
    def lastrowid(self) -> int:
        return self.connection.last_insert_rowid()

    def execute(self, statements: str, bindings: Any = None, **options: Any) -> "Cursor":
        self.description = None
        super().execute(statements, bindings or None, **options)
        self.rowcount = self.connection.changes()
        return self

    def executemany(self, statements: str, sequenceofbindings: Iterable[Any], **options: Any) -> "Cursor":
        self.description = None
        before = self.connection.total_changes()
        super().executemany(statements, sequenceofbindings, **options)
        self.rowcount = self.connection.total_changes() - before
        return self

    def fetchmany(self, size: int | None = None) -> list[Any]:
        return list(islice(self, size or self.arraysize))

    def close(self, force: bool = True) -> None:  # noqa: FBT001, FBT002  # APSW's own signature; rows may be left unread
        super().close(force)


_DESCRIPTION: Final[Any] = apsw.Cursor.description


def _describe(cursor: Cursor, _sql: str, _bindings: object) -> bool:
    """Keep the columns of a statement, which APSW forgets once the last row has been read."""
    cursor.description = _DESCRIPTION.__get__(cursor) or None
    return True


class Connection(apsw.Connection):
    """A connection. Its cursors are APSW's own, which are faster; the execution context creates the cursors for SQLAlchemy."""

    def commit(self) -> None:
        if self.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        if self.in_transaction:
            self.execute("ROLLBACK")


def open_file(file: str, *, create: bool = False) -> Connection:
    """Open a database for SQLAlchemy."""
    connection: Connection = connect(file, create=create, factory=Connection)
    # Make query plans independent of the parameter values. APSW's SQLite is built with STAT4: it would plan a join anew for each
    # set of values, which takes ten times as long as running it.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


class _Dbapi:
    """The attributes that SQLAlchemy expects of a driver's module."""

    paramstyle = "named"
    apilevel = "2.0"
    threadsafety = 1
    Error = apsw.Error
    Binary = bytes
    connect = staticmethod(open_file)

    def __init__(self) -> None:
        self.sqlite_version_info = tuple(library_version())


class _Context(SQLiteExecutionContext):
    def create_default_cursor(self) -> Any:
        return Cursor(self._dbapi_connection.driver_connection)  # type: ignore[arg-type]  # not None: it is open


class ApswDialect(SQLiteDialect_pysqlite):
    """SQLite over APSW, with APSW's errors mapped to SQLAlchemy's errors of the same meaning."""

    execution_ctx_cls = _Context
    driver = "apsw"
    supports_statement_cache = True
    dbapi_exception_translation_map: Mapping[str, str] = {  # as SQLAlchemy declares it
        **{error.__name__: "OperationalError" for error in FAILURES},
        "ConstraintError": "IntegrityError",
        "TooBigError": "DataError",
        "MismatchError": "IntegrityError",
        "Error": "ProgrammingError",
    }

    @classmethod
    def import_dbapi(cls) -> Any:
        return _Dbapi()

    def on_connect(self) -> Callable[[Any], None]:  # the SQL functions that the base class would add are not used
        return lambda _connection: None

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        del dbapi_connection, level  # there is only one: transactions begin and end with statements

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        del dbapi_conn
        return True

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        del connection, cursor
        return isinstance(e, apsw.ConnectionClosedError)
