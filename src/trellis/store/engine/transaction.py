"""A transaction, and the statements that run in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import sqlalchemy as sa

from trellis.store.engine.query_cache import QueryCache

Row = tuple[Any, ...]


class Statement:
    """A SQL statement, written with SQLAlchemy Core, compiled once for each dialect and run as text.

    For statements that run often: SQLAlchemy's own execution costs several times what SQLite takes to read a row by its key.
    """

    def __init__(self, clause: sa.sql.ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[bool, tuple[str, dict[str, Any]]] = {}

    def compile(self, tx: "Transaction") -> tuple[str, dict[str, Any]]:
        """Return the SQL in a transaction's dialect, and the values of the literals in it."""
        if (found := self._compiled.get(tx.sqlite)) is None:
            compiled = self._clause.compile(dialect=tx.connection.dialect, compile_kwargs={"render_postcompile": True})
            own = {name: value for name, value in compiled.params.items() if value is not None}
            found = self._compiled[tx.sqlite] = (str(compiled), own)
        return found


@dataclass(slots=True)
class Transaction:
    """An open transaction.

    `fetch` and `execute` run a Statement; `connection` runs any other SQLAlchemy statement, `raw` any SQL text.
    """

    connection: sa.Connection
    raw: Any  # the driver's own connection
    sqlite: bool  # or else PostgreSQL
    # Shared by all reads of a process. A write has an empty one: what it sees may never be committed.
    cache: QueryCache = field(default_factory=lambda: QueryCache(capacity=0))

    def fetch(self, statement: Statement, **params: Any) -> list[Row]:
        """Run a statement and return its rows. JSON columns come as text on SQLite: see `decode`."""
        return self._run(statement, params).fetchall()  # type: ignore[no-any-return]  # the drivers' cursors are untyped here

    def execute(self, statement: Statement, **params: Any) -> int:
        """Run a statement that returns no rows; return the number of rows that it affected."""
        return int(self._run(statement, params).rowcount)

    def execute_many(self, statement: Statement, rows: Sequence[dict[str, Any]]) -> None:
        """Run a statement that returns no rows once for each of these parameters."""
        sql, own = statement.compile(self)
        self.raw.cursor().executemany(sql, [own | params for params in rows] if own else rows)

    def _run(self, statement: Statement, params: dict[str, Any]) -> Any:
        sql, own = statement.compile(self)
        return self.raw.execute(sql, own | params if own else params)

    def data_version(self) -> int | None:
        """Return SQLite's data version, which changes with every commit of any other connection; None on PostgreSQL."""
        return self.raw.execute("PRAGMA data_version").fetchone()[0] if self.sqlite else None

    def id_list(self, ids: Sequence[int]) -> Any:
        """Convert a list of ids to the parameter that `IdIn` and `NodeIdIn` take."""
        return orjson.dumps(ids).decode() if self.sqlite else list(ids)

    @staticmethod
    def encode(value: Any) -> str:
        """Serialize the value of a JSON column."""
        return orjson.dumps(value).decode()

    @staticmethod
    def decode(value: Any) -> Any:
        """Parse the value of a JSON column: text on SQLite; PostgreSQL's driver has parsed it already. Raises JSONDecodeError."""
        return orjson.loads(value) if isinstance(value, str) else value


class Rollback(Exception):
    """Raised by a write that succeeds and shall leave nothing behind: a dry run. `value` is the result of the write."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value
