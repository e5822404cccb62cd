"""The database: connections, transactions, and the one writer of this process.

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
from trellis.store.engine.data_version import Observed
from trellis.store.engine.invalidation import Notices
from trellis.store.engine.memory import Memory
from trellis.store.engine.transaction import Transaction
from trellis.store.engine.writer import Writer, unreachable

log = logging.getLogger(__name__)

T = TypeVar("T")


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
        self._memory = Memory()
        self._notices = Notices(self._connect_apart)
        self._writer = Writer(self._open, self.failures, settings.busy_timeout, self._notices.committed)

    def listen(self) -> None:
        """Begin to follow what other processes change, so that `data_version` can tell; SQLite tells it by itself."""
        if not self.in_place:
            self._notices.start()

    def data_version(self) -> int | None:
        """Give the number of the state that the data are in: what is read from now on may be kept for as long as it holds.

        It has changed once a write of this process is acknowledged. Other processes' writes change it at once on SQLite, and
        on PostgreSQL within milliseconds, or within a second at worst. None says that nobody knows: then keep nothing.
        """
        if not self.in_place:
            return self._notices.version()
        try:
            if (observed := getattr(self._local, "observed", None)) is None:
                observed = self._local.observed = Observed(self.reader())
            return observed.version()
        except self.failures:
            return None

    def reading(self, *, snapshot: bool = True) -> "Reading":
        """Open a snapshot for reading in this thread, or, for a single statement, a transaction without one.

        Raises Refused (BUSY) when the database cannot be reached.
        """
        return Reading(self, snapshot=snapshot)

    def look(self, work: Callable[[Transaction], T]) -> T:
        """Read with a single statement, which needs no snapshot around it. Raises Refused (BUSY) like `reading`."""
        if not self.in_place:
            with self.reading(snapshot=False) as tx:
                return work(tx)
        try:
            return work(self.reader())
        except self.failures as error:
            raise unreachable(error) from error

    def reader(self) -> Transaction:
        """Give the connection that a read in this thread runs on."""
        if not self.in_place:
            return self._open_for_reading()
        if (tx := getattr(self._local, "reader", None)) is None:  # kept: taking one from a pool costs more than the read
            tx = self._local.reader = self._open_for_reading()
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

    def _connect_apart(self) -> Any:
        """Make a connection outside the pool, that finds out within seconds when nobody is at the other end."""
        dialect = self.engine.dialect
        arguments, options = dialect.create_connect_args(self.engine.url)
        usual = {"application_name": "trellis listener", "connect_timeout": 10, "tcp_user_timeout": 5000}
        return dialect.connect(*arguments, **{**usual, **options}, autocommit=True, prepare_threshold=None)

    def _open_for_reading(self) -> Transaction:
        tx = self._open()
        tx.memory = self._memory  # a write has none in common with others: what it sees may never be committed
        return tx

    def write(self, work: Callable[[Transaction], T], *, quiet: bool = False) -> Future[T]:
        """Hand a piece of work to the writer; the future is done once what it wrote is durable.

        What `work` raises reaches the future, and nothing that it wrote stays; Undo gives its value and leaves nothing.
        Bookkeeping that no kept answer and no judgement of a key shows is `quiet`: the data version need not change for it.
        """
        return self._writer.submit(work, quiet=quiet)

    def close(self) -> None:
        """Finish the writes that wait, and let the connections go."""
        self._notices.close()
        self._writer.close()
        self.forget_reader()
        self.engine.dispose()

    def forget_reader(self) -> None:
        """Close the connection that was kept for reads in this thread; it is made anew when it is needed."""
        if (tx := getattr(self._local, "reader", None)) is not None:
            tx.connection.close()
            del self._local.reader
            self._local.observed = None


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
