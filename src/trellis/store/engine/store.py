"""The database: its connections, reads in snapshots, and the one writer of this process.

Reads run in the caller's thread, each in a snapshot of its own. Writes run one after another in one writer thread, which
holds SQLite's write lock or PostgreSQL's advisory lock, so that cycles, order and references cannot race between processes
either. Writes that wait together share one commit, each in a savepoint of its own, and are acknowledged only after it.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, QueuePool

from trellis.settings import Settings
from trellis.store.engine.data_version import SqliteDataVersion
from trellis.store.engine.invalidation import InvalidationListener
from trellis.store.engine.query_cache import QueryCache
from trellis.store.engine.transaction import Transaction
from trellis.store.engine.writer import Writer, refuse_busy

log = logging.getLogger(__name__)

T = TypeVar("T")


class Store:
    """One database, for this process.

    `reads_inline` says that reads run in the calling thread, even that of an event loop: SQLite reads a page in less time than
    handing it to another thread takes. On PostgreSQL they wait for the network and belong into a thread of their own.
    `failures` are the driver's errors for a database that is busy or out of reach.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.engine = create_engine(settings)
        self.reads_inline = self.engine.dialect.name == "sqlite"
        driver: Any = self.engine.dialect.dbapi
        self.failures: tuple[type[Exception], ...] = (
            sa.exc.OperationalError,
            sa.exc.TimeoutError,
            driver.OperationalError,
        )
        self._local = threading.local()
        self._cache = QueryCache()
        self._listener = InvalidationListener(self._connect_listener)
        self._writer = Writer(self._open, self.failures, settings.busy_timeout, self._listener.record_commit)

    def listen(self) -> None:
        """Start to follow the commits of other processes, which `data_version` needs on PostgreSQL; SQLite tells by itself."""
        if not self.reads_inline:
            self._listener.start()

    def data_version(self) -> int | None:
        """Return a number for the state of the data: what is read from now on may be cached for as long as it stays the same.

        A write of this process has changed it by the time it is acknowledged. Other processes' writes change it at once on
        SQLite, and on PostgreSQL within milliseconds, or within a second at worst. None means unknown: then cache nothing.
        """
        if not self.reads_inline:
            return self._listener.data_version()
        try:
            if (version := getattr(self._local, "data_version", None)) is None:
                version = self._local.data_version = SqliteDataVersion(self.acquire_reader())
            return int(version.read())
        except self.failures:
            return None

    def reading(self, *, snapshot: bool = True) -> "Reading":
        """Return a context that reads in this thread: in a snapshot, or, for a single statement, without one.

        Raises Refused (BUSY) when the database cannot be reached.
        """
        return Reading(self, snapshot=snapshot)

    def read_single(self, work: Callable[[Transaction], T]) -> T:
        """Run a read of a single statement, which needs no snapshot around it. Raises Refused (BUSY) like `reading`."""
        if not self.reads_inline:
            with self.reading(snapshot=False) as tx:
                return work(tx)
        try:
            return work(self.acquire_reader())
        except self.failures as error:
            raise refuse_busy(error) from error

    def acquire_reader(self) -> Transaction:
        """Return the connection for a read in this thread; `release_reader` is to follow."""
        if not self.reads_inline:
            return self._open_for_reading()
        if (tx := getattr(self._local, "reader", None)) is None:  # kept: taking one from a pool costs more than a read
            tx = self._local.reader = self._open_for_reading()
            tx.raw.execute("PRAGMA query_only=ON")
        return tx

    def release_reader(self, tx: Transaction) -> None:
        """Release a connection that `acquire_reader` returned. SQLite's stays open for the thread's next read."""
        if not self.reads_inline:
            if tx.raw.closed:
                tx.connection.invalidate()
                self.engine.dispose()  # what closed this connection has closed those in the pool too
            tx.connection.close()

    def _open(self) -> Transaction:
        connection = self.engine.connect()
        raw = connection.connection.driver_connection
        return Transaction(connection, raw, sqlite=self.reads_inline)

    def _connect_listener(self) -> Any:
        """Open a connection outside the pool, with time limits that find a dead peer within seconds."""
        dialect = self.engine.dialect
        arguments, options = dialect.create_connect_args(self.engine.url)
        usual = {"application_name": "trellis listener", "connect_timeout": 10, "tcp_user_timeout": 5000}
        return dialect.connect(*arguments, **{**usual, **options}, autocommit=True, prepare_threshold=None)

    def _open_for_reading(self) -> Transaction:
        tx = self._open()
        tx.cache = self._cache
        return tx

    def write(self, work: Callable[[Transaction], T], *, quiet: bool = False) -> Future[T]:
        """Hand a piece of work to the writer; the future is done once what it wrote is durable.

        What `work` raises becomes the exception of the future, and nothing that it wrote stays. Rollback makes its value the
        result, and nothing stays either. A `quiet` write does not change the data version: only for bookkeeping on which no cached
        response and no judgement of a key depends.
        """
        return self._writer.submit(work, quiet=quiet)

    def close(self) -> None:
        """Finish the writes that wait, and close all connections."""
        self._listener.close()
        self._writer.close()
        self.close_reader()
        self.engine.dispose()

    def close_reader(self) -> None:
        """Close the connection kept for reads in this thread; the next read opens another."""
        if (tx := getattr(self._local, "reader", None)) is not None:
            tx.connection.close()
            del self._local.reader
            self._local.data_version = None


class Reading:
    """The context of one read. A class: a generator would cost as much as the read itself."""

    __slots__ = ("_snapshot", "_store", "_tx")

    def __init__(self, store: Store, *, snapshot: bool) -> None:
        self._store = store
        self._snapshot = snapshot
        self._tx: Transaction | None = None

    def __enter__(self) -> Transaction:
        try:
            tx = self._tx = self._store.acquire_reader()
            if self._snapshot:
                tx.raw.execute("BEGIN" if tx.sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except Exception as error:
            self._end()
            raise refuse_busy(error) from error
        return tx

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._end()
        if isinstance(error, self._store.failures):
            raise refuse_busy(error) from error

    def _end(self) -> None:
        if (tx := self._tx) is None:
            return
        try:
            if self._snapshot and not getattr(tx.raw, "closed", False):
                tx.raw.execute("ROLLBACK")
        except self._store.failures as error:
            log.warning("A read could not be ended: %s", error)
        finally:
            self._store.release_reader(tx)


def create_engine(settings: Settings) -> sa.Engine:
    """Create the SQLAlchemy engine for a database. Transactions begin and end with plain SQL statements, on both dialects."""
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


def _prepare_sqlite(busy_timeout: int) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, _record: Any) -> None:
        for pragma in (
            f"busy_timeout={busy_timeout}",  # first: the others may have to wait
            "journal_mode=WAL",
            "synchronous=FULL",  # an acknowledged write survives a power cut
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "cache_size=-16384",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    return prepare
