"""What a request changed: every row of the database, bookkeeping apart, and every event."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store import last_runs
from trellis.store.tables import (
    METADATA,
    counters,
    key_quarters,
    key_uses,
    keyless_requests,
    request_hours,
    request_shapes,
    requests,
    search_names,
)

_BOOKKEEPING: Final = (requests, request_shapes, key_uses, key_quarters, keyless_requests, request_hours, search_names)
# Counters that a process writes by itself, at a time of its own: see `trellis.housekeeping`.
_BESIDE_REQUESTS: Final = ("request log", "listener ", "search", last_runs.PURGE, last_runs.BACKUP)

Rows = dict[str, list[dict[str, Any]]]
Event = dict[str, Any]
NewEvents = Callable[[], list[Event]]


class DatabaseState:
    """Compares the database before and after; see design decision 8 for what counts as bookkeeping."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.environment = gate.environment

    def rows(self) -> Rows:
        """Return all rows of all tables, left out the request log, the last use of keys, and what processes tell each other."""
        with self._gate.store.reading() as tx:
            return {table.name: _rows(tx.connection, table) for table in _compared()}

    def stored(self) -> dict[str, list[Any]]:
        """Return the same rows as they are stored: to read values out of them takes longer than to compare them."""
        tables = _compared()
        with self._gate.store.reading() as tx:
            if tx.sqlite:
                return {table.name: tx.raw.execute(_command(table, tx.connection.dialect)).fetchall() for table in tables}
            found = tx.raw.execute(_all(tx.connection.dialect), prepare=True).fetchone()  # to plan it takes longer than to run it
            return dict(zip([table.name for table in tables], found, strict=True))

    def requests(self) -> list[dict[str, Any]]:
        """Return the request log, the oldest first."""
        with self._gate.store.reading() as tx:
            return [dict(row) for row in tx.connection.exec_driver_sql("SELECT * FROM requests ORDER BY id").mappings()]

    def events(self, after: int = 0) -> list[Event]:
        """Return the events behind a sequence number."""
        call = Call("events.list", TERMINAL, {"limit": 1000, "after": after})
        return list(self._gate.run(call).value["results"])

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check that nothing is changed: not one row, event or id."""
        before = self.stored()
        yield
        after = self.stored()
        changed = {name: [row for row in after[name] if row not in before[name]] for name in after if after[name] != before[name]}
        assert not changed, f"what is stored now and was not before, by table: {changed}"

    @contextmanager
    def new_events(self) -> Iterator[NewEvents]:
        """Return a function that lists the events from here on."""
        newest = self._gate.run(Call("events.list", TERMINAL, {"order": "newest", "limit": 1})).value["results"]
        seq = newest[0]["seq"] if newest else 0
        yield lambda: self.events(seq)


def _rows(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(_select(table)).mappings()]


@cache
def _compared() -> tuple[sa.Table, ...]:
    return tuple(table for table in METADATA.sorted_tables if table not in _BOOKKEEPING)


@cache
def _select(table: sa.Table) -> sa.Select[Any]:
    columns = [column for column in table.columns if column.name != "last_used_at"]
    found = sa.select(*columns).order_by(*table.primary_key.columns)
    if table is counters:
        return found.where(*(sa.func.substr(counters.c.name, 1, len(start)) != start for start in _BESIDE_REQUESTS))
    return found


_commands: Final[dict[tuple[sa.Table, str], str]] = {}  # by table and engine: each database has a dialect of its own


def _command(table: sa.Table, dialect: sa.Dialect) -> str:
    if (command := _commands.get((table, dialect.name))) is None:
        compiled = _select(table).compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        command = _commands[table, dialect.name] = str(compiled)
    return command


def _all(dialect: sa.Dialect) -> str:
    """Return the one command that reads all tables of PostgreSQL, each as a list of its rows as text."""
    each = (f"ARRAY(SELECT row::text FROM ({_command(table, dialect)}) AS row)" for table in _compared())  # noqa: S608  # our own
    return "SELECT " + ", ".join(each)
