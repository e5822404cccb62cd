"""A transaction, and the statements that run in it."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

import orjson
import sqlalchemy as sa

from trellis.errors import LongRead
from trellis.store import sqlite
from trellis.store.engine.faults import OpenFile, is_fault

Row = tuple[Any, ...]
_NO_MEMORY: Final = "Not enough memory"  # what orjson's error says then
_KEPT_READS: Final = 128  # entries; the least recently used is removed first
_KEPT_IDS: Final = 16_000_000  # ids in all entries together: 128 MB


def load_json(text: str | bytes) -> Any:
    """Parse stored JSON. Raises JSONDecodeError, and MemoryError if there is no memory for it.

    orjson reports a lack of memory as if the text were wrong.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith(_NO_MEMORY):
            raise MemoryError(error.msg) from error
        raise


class Statement:
    """A SQL statement, written with SQLAlchemy Core, compiled once for each dialect and run as text.

    For statements that run often: SQLAlchemy's own execution costs several times what SQLite takes to read a row by its key.

    With `beside_taken`, a statement about counters may run although numbers taken from sequences have not been written yet.
    """

    def __init__(self, clause: sa.sql.ClauseElement, *, beside_taken: bool = False) -> None:
        self._clause = clause
        self.compiled: dict[bool, tuple[str, dict[str, Any]]] = {}  # the results of `compile`, by whether they are for SQLite
        self._beside_taken = beside_taken
        self.wants_counters = False  # known once it is compiled

    def compile(self, tx: "Transaction") -> tuple[str, dict[str, Any]]:
        """Return the SQL in a transaction's dialect, and the values of the literals in it."""
        compiled = self._clause.compile(dialect=tx.bare_connection.dialect, compile_kwargs={"render_postcompile": True})
        own = {name: value for name, value in compiled.params.items() if value is not None}
        self.wants_counters = _COUNTERS in str(compiled) and not self._beside_taken
        found = self.compiled[tx.sqlite] = (str(compiled), own)
        return found


def upsert(table: sa.Table, update: str, *, beside_taken: bool = False) -> Statement:
    """Return a statement that inserts a row, or, if there is one with its primary key, updates that one.

    Its parameters are named as the columns. In `update`, the columns of `excluded` are the values that were to be inserted.
    """
    names, key = table.columns.keys(), table.primary_key.columns.keys()
    row = f"{table.name} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"
    sql = f"INSERT INTO {row} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {update}"
    return Statement(sa.text(sql), beside_taken=beside_taken)


class Taken(NamedTuple):
    """The numbers that a transaction has taken of a sequence: the last one, and what to add to the total. See `store.counters`."""

    last: int
    more: int = 0
    is_written: bool = True


_COUNTERS: Final = "counters"
_WRITE_TAKEN: Final = Statement(
    sa.text(f"UPDATE {_COUNTERS} SET last = :last, total = total + :more WHERE name = :name")  # noqa: S608  # our own text
)


class QueryCache:
    """What a process keeps of its latest reads: an LRU cache of at most `capacity` entries. Any number of threads may use it.

    The `weight` of an entry is the number of ids in it, if they are many. The weights add up to at most `room`, unless only one
    entry is left.

    Commits do not change the cache: each entry of `trellis.store.lists` records the journal entry as of which it is valid. In
    another database, such as a restored backup, the same number stands for another change. Therefore the cache is cleared whenever
    the database may be a different one.
    """

    def __init__(self, capacity: int = _KEPT_READS, room: int = _KEPT_IDS) -> None:
        self._capacity = capacity
        self._room = room
        self._entries: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._weights: dict[tuple[Any, ...], int] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...]) -> Any | None:
        """Return the entry of a key and mark it as just used; None if there is no entry."""
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: tuple[Any, ...], entry: Any, weight: int = 0) -> None:
        """Add an entry, or replace it."""
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            self._weights[key] = weight
            while len(self._entries) > self._capacity or (len(self._entries) > 1 and sum(self._weights.values()) > self._room):
                oldest, _ = self._entries.popitem(last=False)
                del self._weights[oldest]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._weights.clear()


_Row = TypeVar("_Row")

_AT_ONCE: Final = 2000  # rows of one statement, after which the time is checked
_BRIEF: Final = 512 * 1024  # bytes of records that are read and encoded in about four milliseconds
BRIEFLY: Final = 0.05  # seconds for which a read may keep an event loop; longer than one search of a log, see log_search


@dataclass(slots=True)
class Transaction:
    """An open transaction.

    `fetch` and `execute` run a Statement; `connection` runs any other SQLAlchemy statement, `raw` any SQL text that is not about
    counters.
    """

    bare_connection: sa.Connection  # the same as `connection`, but only for statements that are not about counters
    raw: Any  # the driver's own connection
    sqlite: bool  # False: PostgreSQL
    # Shared by all reads of a process. A write has one that stays empty: what it reads may never be committed.
    cache: QueryCache = field(default_factory=lambda: QueryCache(capacity=0))
    # Set by a write that changes a key: the write is acknowledged once no process remembers the old key.
    changes_keys: bool = False
    read_keys: dict[int, Any] = field(default_factory=dict)  # keys read by writes since it began; see store.keys
    inserted: int = 0  # nodes inserted since the connection was opened; see store.nodes
    taken: dict[str, Taken] = field(default_factory=dict)  # by sequence; partly not written yet
    newest_event_at: str | None = None  # None if not read since the transaction began; see events.log
    file: OpenFile | None = None  # on SQLite, from the first check on
    block_changes: Counter[Any] = field(default_factory=Counter)  # how often siblings in a block were changed; see store.siblings
    brief_until: float | None = None  # by the monotonic clock, if it reads on an event loop; see Store.reading_briefly
    must_end_by: float | None = None  # by the monotonic clock, while a write runs that may only take so long
    cursor: Any = None  # on PostgreSQL, from the first statement on; see `_open_cursor`

    @property
    def is_brief(self) -> bool:
        """Whether it reads on an event loop."""
        return self.brief_until is not None

    def check_time(self) -> None:
        """Raise LongRead if a read on an event loop has taken longer than it may."""
        if self.brief_until is not None and monotonic() > self.brief_until:
            raise LongRead

    def check_brief(self, size: int) -> None:
        """Raise LongRead if a read on an event loop has found more bytes of records than may be read there."""
        if self.is_brief and size > _BRIEF:
            raise LongRead

    @contextmanager
    def ending_by(self, moment: float | None) -> Iterator[None]:
        """Let no statement begin after a moment of the monotonic clock, so that a write cannot keep others waiting for longer.

        The first one that is to run later raises Overdue.
        """
        self.must_end_by = moment
        try:
            yield
        finally:
            self.must_end_by = None

    def _check_end(self) -> None:
        if self.must_end_by is not None and monotonic() > self.must_end_by:
            raise Overdue

    @property
    def connection(self) -> sa.Connection:
        """SQLAlchemy's connection."""
        self._check_end()
        if self.taken:
            self.write_taken()
        return self.bare_connection

    def write_taken(self) -> None:
        """Write the numbers taken from sequences, and forget them: after that the rows of the counters are up to date."""
        taken, self.taken = self.taken, {}
        for name, one in taken.items():
            if not one.is_written:
                self.execute(_WRITE_TAKEN, name=name, last=one.last, more=one.more)

    def fetch(self, statement: Statement, **params: Any) -> list[Row]:
        """Run a statement and return its rows. JSON columns come as text on SQLite: see `decode`."""
        return self._run(statement, params).fetchall()  # type: ignore[no-any-return]  # the drivers' cursors are untyped here

    def stream(self, statement: Statement) -> Iterator[Row]:
        """Run a statement without parameters and yield each row once it is found. No other one may run before the last row."""
        sql, own, runner = self._prepare(statement)
        yield from runner.execute(sql, own) if self.sqlite else runner.stream(sql, own)

    def execute(self, statement: Statement, **params: Any) -> int:
        """Run a statement that returns no rows; return the number of rows that it affected."""
        cursor = self._run(statement, params)
        return sqlite.changed_rows(cursor) if self.sqlite else int(cursor.rowcount)

    def count(self, table: sa.FromClause, *where: sa.ColumnElement[bool]) -> int:
        """Count the rows of a table, or of a selection, that satisfy all conditions."""
        return int(self.connection.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar_one())

    def execute_many(self, statement: Statement, rows: Sequence[dict[str, Any]]) -> None:
        """Run a statement that returns no rows, once for each set of parameters in `rows`."""
        for batch in _split(rows):
            sql, own, runner = self._prepare(statement)
            given = [own | params for params in batch] if own else batch
            if len(given) == 1:  # psycopg would begin a pipeline for it
                runner.execute(sql, given[0])
            else:
                runner.executemany(sql, given)

    def execute_rows(self, statement: Statement, rows: Sequence[tuple[Any, ...]], **params: Any) -> None:
        """Run a statement about rows that returns none, with the same parameters for all of them. See OfRows."""
        for batch in _split(rows):
            self.execute(statement, rows=self.encode(batch), **params)

    def _run(self, statement: Statement, params: dict[str, Any]) -> Any:
        sql, own, runner = self._prepare(statement)
        return runner.execute(sql, own | params if own else params)

    def _prepare(self, statement: Statement) -> tuple[str, dict[str, Any], Any]:
        """Return the SQL of a statement, the values of the literals in it, and the cursor or connection that runs it."""
        self._check_end()
        sql, own = statement.compiled.get(self.sqlite) or statement.compile(self)
        if self.taken and statement.wants_counters:
            self.write_taken()
        return sql, own, self.raw if self.sqlite else self.cursor or self._open_cursor()

    def _open_cursor(self) -> Any:
        """Open one cursor for all statements: opening one for each, as psycopg would, takes a third of a statement's time."""
        self.cursor = self.raw.cursor()
        return self.cursor

    def data_version(self) -> int | None:
        """Return SQLite's data version, which changes with every commit of any other connection; None on PostgreSQL.

        APSW's `data_version()` would cost less but be wrong: it returns the version as of this connection's last read.
        """
        return self.raw.execute("PRAGMA data_version").fetchone()[0] if self.sqlite else None

    def total_changes(self) -> int:
        """Return the number of rows that this connection has changed since it was opened, on SQLite; 0 on PostgreSQL."""
        return sqlite.total_changes(self.raw) if self.sqlite else 0

    def check_file(self) -> None:
        """Raise FileGone if the file of the database, or its WAL, is no longer the one that this connection has open."""
        if self.sqlite:
            if self.file is None:
                self.file = OpenFile(self.raw)
            self.file.check()

    def id_list(self, ids: Sequence[int] | Sequence[str]) -> Any:
        """Convert a list of ids, or of texts, to the parameter that `IdIn`, `NodeIdIn` and `TextIn` take."""
        return orjson.dumps(ids).decode() if self.sqlite else list(ids)

    @staticmethod
    def encode(value: Any) -> str:
        """Serialise the value of a JSON column."""
        return orjson.dumps(value).decode()

    @staticmethod
    def decode(value: Any) -> Any:
        """Parse the value of a JSON column: text on SQLite; PostgreSQL's driver has parsed it already.

        Raises what `load_json` does.
        """
        return load_json(value) if isinstance(value, str) else value

    def reading_everything(self) -> AbstractContextManager[None]:
        """Return a context in which statements may read whole tables and, on PostgreSQL, take as long as those of writes."""
        return nullcontext() if self.sqlite else self.raw.reading_everything()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is written inside if it raises; the transaction goes on, unless the error is a fault of the database."""
        self.raw.execute("SAVEPOINT step")
        before = self.taken.copy(), self.newest_event_at
        try:
            yield
        except BaseException as error:
            # After a fault, the writer rolls everything back. On a full disk, for example, SQLite has ended all savepoints by then.
            if not is_fault(error):
                self.raw.execute("ROLLBACK TO SAVEPOINT step")
                self.raw.execute("RELEASE SAVEPOINT step")
            self.taken, self.newest_event_at = before
            raise
        self.raw.execute("RELEASE SAVEPOINT step")

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undo what is written inside, whether it raises or not; the transaction goes on, unless the error is a fault."""
        with suppress(_TrialOver), self.savepoint():
            yield
            raise _TrialOver


def _split(rows: Sequence[_Row]) -> Iterator[Sequence[_Row]]:
    return (rows[first : first + _AT_ONCE] for first in range(0, len(rows), _AT_ONCE))


class Overdue(Exception):
    """Raised by a write that has taken longer than it may. It is no refusal, which a call that runs others may go on after."""


class _TrialOver(Exception):
    """Undoes what was written in a trial that has not raised."""


class Rollback(Exception):
    """Raised by a write that has succeeded but must be rolled back: a dry run. `value` is the result of the write."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value
