"""A transaction, and the statements that run in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import sqlalchemy as sa

from trellis.store.engine.memory import Memory

Row = tuple[Any, ...]


class Statement:
    """A SQL statement, written with SQLAlchemy Core, compiled once for each dialect and run as text."""

    def __init__(self, clause: sa.sql.ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[bool, tuple[str, dict[str, Any]]] = {}

    def text(self, tx: "Transaction") -> tuple[str, dict[str, Any]]:
        """Give the SQL in a transaction's dialect, and the values that it holds itself."""
        if (found := self._compiled.get(tx.sqlite)) is None:
            compiled = self._clause.compile(dialect=tx.connection.dialect, compile_kwargs={"render_postcompile": True})
            own = {name: value for name, value in compiled.params.items() if value is not None}
            found = self._compiled[tx.sqlite] = (str(compiled), own)
        return found


@dataclass(slots=True)
class Transaction:
    """An open transaction: `connection` runs statements that are built as they are needed, `rows` and `change` hot ones."""

    connection: sa.Connection
    raw: Any  # the driver's own connection
    sqlite: bool  # or else PostgreSQL
    memory: Memory = field(default_factory=lambda: Memory(most=0))  # what the process remembers of lists, if it reads only

    def rows(self, statement: Statement, **params: Any) -> list[Row]:
        """Run a hot statement that answers rows. JSON columns come as text on SQLite: see `decoded`."""
        return self._run(statement, params).fetchall()  # type: ignore[no-any-return]  # the drivers' cursors are untyped here

    def change(self, statement: Statement, **params: Any) -> int:
        """Run a hot statement that answers no rows; give the number of rows that it touched."""
        return int(self._run(statement, params).rowcount)

    def change_many(self, statement: Statement, rows: Sequence[dict[str, Any]]) -> None:
        """Run a hot statement that answers no rows once for each of these parameters."""
        sql, own = statement.text(self)
        self.raw.cursor().executemany(sql, [own | params for params in rows] if own else rows)

    def _run(self, statement: Statement, params: dict[str, Any]) -> Any:
        sql, own = statement.text(self)
        return self.raw.execute(sql, own | params if own else params)

    def version(self) -> int | None:
        """Give SQLite's data version, which changes with every commit of any other connection; None on PostgreSQL."""
        return self.raw.execute("PRAGMA data_version").fetchone()[0] if self.sqlite else None

    def ids(self, ids: Sequence[int]) -> Any:
        """Write a list of ids as the parameter of `Among`."""
        return orjson.dumps(ids).decode() if self.sqlite else list(ids)

    @staticmethod
    def encoded(value: Any) -> str:
        """Write a JSON column."""
        return orjson.dumps(value).decode()

    @staticmethod
    def decoded(value: Any) -> Any:
        """Read a JSON column: the text of SQLite, or what PostgreSQL's driver has read already."""
        return orjson.loads(value) if isinstance(value, str) else value


class Undo(Exception):
    """Raised by a write that ends well and shall leave nothing behind: a dry run. `value` is the write's result."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value
