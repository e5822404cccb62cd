"""The database: connections, transactions, and the one writer of this process.

Reads run in the caller's thread, each in a snapshot of its own. Writes run one after another in one writer thread, which
holds SQLite's write lock or PostgreSQL's advisory lock, so that cycles, order and references cannot race between processes
either. Writes that wait together share one commit, each in a savepoint of its own, and are acknowledged only after it.
"""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
import sqlalchemy as sa
from sqlalchemy.pool import NullPool, QueuePool

from trellis.errors import Refused
from trellis.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = tuple[Any, ...]

_WRITE_LOCK: Final = 0x7472656C6C6973  # PostgreSQL's advisory lock: 'trellis' in ASCII
_BATCH: Final = 64  # writes that may share one commit
_BATCH_SECONDS: Final = 0.02  # after which no further write joins a commit


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

    def rows(self, statement: Statement, **params: Any) -> list[Row]:
        """Run a hot statement that answers rows. JSON columns come as text on SQLite: see `decoded`."""
        return self._run(statement, params).fetchall()  # type: ignore[no-any-return]  # the drivers' cursors are untyped here

    def change(self, statement: Statement, **params: Any) -> int:
        """Run a hot statement that answers no rows; give the number of rows that it touched."""
        return int(self._run(statement, params).rowcount)

    def _run(self, statement: Statement, params: dict[str, Any]) -> Any:
        sql, own = statement.text(self)
        return self.raw.execute(sql, own | params if own else params)

    def version(self) -> int | None:
        """Give a number that changes with every commit of any other connection: SQLite's data version; None on PostgreSQL."""
        return self.raw.execute("PRAGMA data_version").fetchone()[0] if self.sqlite else None

    def ids(self, ids: tuple[int, ...] | list[int]) -> Any:
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


@dataclass(slots=True)
class _Job:
    work: Callable[[Transaction], Any]
    future: Future[Any]
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Store:
    """The door to one database. `in_place` says that reads are quick enough to run where they are asked for."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.engine = engine_of(settings)
        self.in_place = self.engine.dialect.name == "sqlite"
        driver: Any = self.engine.dialect.dbapi
        self.failures: tuple[type[Exception], ...] = (
            sa.exc.OperationalError,
            sa.exc.TimeoutError,
            driver.OperationalError,
        )
        self._local = threading.local()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._starting = threading.Lock()

    def reading(self, *, snapshot: bool = True) -> "Reading":
        """Open a snapshot for reading in this thread, or, for a single statement, a transaction without one.

        Raises Refused (BUSY) when the database cannot be reached.
        """
        return Reading(self, snapshot=snapshot)

    def reader(self) -> Transaction:
        """Give the connection that a read in this thread runs on."""
        if not self.in_place:
            return self._open()
        if (tx := getattr(self._local, "reader", None)) is None:  # kept: taking one from a pool costs more than the read
            tx = self._local.reader = self._open()
            tx.raw.execute("PRAGMA query_only=ON")
        return tx

    def release(self, tx: Transaction) -> None:
        """Take back a connection that `reader` gave."""
        if not self.in_place:
            if tx.raw.closed:
                tx.connection.invalidate()
                self.engine.dispose()  # what took this connection took those in the pool too
            tx.connection.close()

    def _open(self) -> Transaction:
        connection = self.engine.connect()
        raw = connection.connection.driver_connection
        return Transaction(connection, raw, sqlite=self.in_place)

    def write(self, work: Callable[[Transaction], T]) -> Future[T]:
        """Hand a piece of work to the writer; the future is done once what it wrote is durable.

        What `work` raises reaches the future, and nothing that it wrote stays; Undo gives its value and leaves nothing.
        """
        future: Future[T] = Future()
        if self._writer is None:
            with self._starting:
                if self._writer is None:
                    self._writer = threading.Thread(target=self._serve, name="trellis-writer", daemon=True)
                    self._writer.start()
        self._jobs.put(_Job(work, future))
        return future

    def close(self) -> None:
        """Finish the writes that wait, and let the connections go."""
        if self._writer is not None:
            self._jobs.put(None)
            self._writer.join()
            self._writer = None
        if (tx := getattr(self._local, "reader", None)) is not None:
            tx.connection.close()
            del self._local.reader
        self.engine.dispose()

    def _serve(self) -> None:
        tx: Transaction | None = None
        while (job := self._jobs.get()) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            batch = [job]
            try:
                if tx is None:
                    tx = self._open()
                    if tx.sqlite:
                        tx.raw.execute("PRAGMA busy_timeout=0")  # `_begin` does the waiting
                self._commit_together(tx, batch)
            except BaseException as error:  # noqa: BLE001  # whatever it was, those who wait must hear of it
                log.warning("A commit failed: %s", error)
                refusal = unreachable(error)
                for failed in batch:
                    failed.result, failed.error = None, refusal
                tx = self._discard(tx)
            for done in batch:
                done.settle()
        if tx is not None:
            tx.connection.close()

    def _commit_together(self, tx: Transaction, batch: list[_Job]) -> None:
        """Run the first job and those that wait behind it in one transaction, each in a savepoint of its own."""
        self._begin(tx)
        try:
            opened = time.monotonic()
            kept = self._run(tx, batch[0])
            while len(batch) < _BATCH and time.monotonic() - opened < _BATCH_SECONDS:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    self._jobs.put(None)  # the end comes after this batch
                    break
                if job.future.set_running_or_notify_cancel():
                    batch.append(job)
                    kept |= self._run(tx, job)
            tx.raw.execute("COMMIT" if kept else "ROLLBACK")
        except BaseException:
            with suppress(Exception):
                tx.raw.execute("ROLLBACK")
            raise

    def _begin(self, tx: Transaction) -> None:
        if not tx.sqlite:
            tx.raw.execute("BEGIN")
            tx.raw.execute(f"SET LOCAL lock_timeout = '{self.settings.busy_timeout}s'")
            tx.raw.execute(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
            return
        # SQLite's own waiting backs off to 100 ms, and a busy neighbour would always be there first: ask more often.
        deadline = time.monotonic() + self.settings.busy_timeout
        while True:
            try:
                tx.raw.execute("BEGIN IMMEDIATE")
            except self.failures as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.0005, 0.002))  # noqa: S311  # jitter, not a secret
            else:
                return

    @staticmethod
    def _run(tx: Transaction, job: _Job) -> bool:
        """Run one job in a savepoint; say whether what it wrote stays."""
        tx.raw.execute("SAVEPOINT job")
        try:
            job.result = job.work(tx)
        except BaseException as error:  # noqa: BLE001  # it belongs to whoever handed the job in
            if isinstance(error, Undo):
                job.result = error.value
            else:
                job.error = error
            tx.raw.execute("ROLLBACK TO SAVEPOINT job")
            tx.raw.execute("RELEASE SAVEPOINT job")
            return False
        tx.raw.execute("RELEASE SAVEPOINT job")
        return True

    def _discard(self, tx: Transaction | None) -> None:
        if tx is not None:
            with suppress(Exception):
                if getattr(tx.raw, "closed", False):
                    self.engine.dispose()
                tx.connection.invalidate()
                tx.connection.close()


class Reading:
    """The context of one read. A class, since a generator would cost as much as the read itself."""

    __slots__ = ("_snapshot", "_store", "_tx")

    def __init__(self, store: Store, *, snapshot: bool) -> None:
        self._store = store
        self._snapshot = snapshot
        self._tx: Transaction | None = None

    def __enter__(self) -> Transaction:
        try:
            tx = self._tx = self._store.reader()
            if self._snapshot:
                tx.raw.execute("BEGIN" if tx.sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except Exception as error:
            self._end()
            raise unreachable(error) from error
        return tx

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._end()
        if isinstance(error, self._store.failures):
            raise unreachable(error) from error

    def _end(self) -> None:
        if (tx := self._tx) is None:
            return
        try:
            if self._snapshot and not getattr(tx.raw, "closed", False):
                tx.raw.execute("ROLLBACK")
        except self._store.failures as error:
            log.warning("A read could not be ended: %s", error)
        finally:
            self._store.release(tx)


def unreachable(error: BaseException) -> Refused:
    """Say that the database did not do its part; the log has the reason."""
    log.error("The database could not be used: %s", error)
    return Refused("BUSY", "The database is busy or cannot be reached. Nothing was changed as far as we know; try again.")


def engine_of(settings: Settings) -> sa.Engine:
    """Make the engine for a database URL. Transactions are begun and ended by hand, in plain SQL, on both dialects."""
    if settings.database_url.startswith("sqlite"):
        url = sa.make_url(settings.database_url)
        Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
        engine = sa.create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
            paramstyle="named",
            connect_args={"check_same_thread": False, "cached_statements": 512},
        )
        sa.event.listen(engine, "connect", _prepare_sqlite(settings.busy_timeout * 1000))
        return engine
    url = sa.make_url(settings.database_url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
    return sa.create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        poolclass=QueuePool,
        pool_size=settings.database_pool + 1,
        max_overflow=0,
        pool_timeout=settings.busy_timeout,
        connect_args={"connect_timeout": 10},
    )


def _prepare_sqlite(patience: int) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, _record: Any) -> None:
        for pragma in (
            f"busy_timeout={patience}",  # first: the others may have to wait
            "journal_mode=WAL",
            "synchronous=FULL",  # an acknowledged write survives a power cut
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "cache_size=-16384",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    return prepare
