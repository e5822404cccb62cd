"""The database: its connections, reads in snapshots, and the one writer of this process.

Reads run in the caller's thread, each in a snapshot of its own. Writes run one after another in one writer thread, which
holds SQLite's write lock or PostgreSQL's advisory lock, so that the checks for cycles, order and references cannot race between
processes either. Writes that wait together share one commit, each in a savepoint of its own, and are acknowledged only after it.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.engine.changes import Shown
from trellis.store.engine.connect import connect_directly, create_engine
from trellis.store.engine.data_version import SqliteDataVersion
from trellis.store.engine.faults import Faults, FileGone, describe_lack, is_fault
from trellis.store.engine.invalidation import InvalidationListener
from trellis.store.engine.listeners import Listeners
from trellis.store.engine.outage import Outage, refuse_busy
from trellis.store.engine.transaction import BRIEFLY, QueryCache, Transaction, upsert
from trellis.store.engine.writer import Writer
from trellis.store.tables import counters

log = logging.getLogger(__name__)

T = TypeVar("T")

_CHECK_EVERY: Final = 1.0  # seconds after which a reader checks again that its file was not removed or replaced
# With another value each time: SQLite writes nothing if a row stays as it is, and so would not notice what keeps it from writing.
_TRIAL: Final = upsert(counters, "total = 1 - counters.total")


class Store:
    """One database, for this process.

    With `reads_inline`, reads may run in any thread, even that of an event loop: SQLite reads a page in less time than it takes to
    hand the read to another thread. On PostgreSQL reads wait for the network and belong in a thread of their own.
    `failures` are the errors for a database that is busy or cannot be reached. `writer` runs the writes: see `write`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.engine = create_engine(settings)
        self.reads_inline = self.engine.dialect.name == "sqlite"
        self.failures: tuple[type[Exception], ...] = (
            sa.exc.OperationalError,
            sa.exc.InternalError,
            sa.exc.TimeoutError,
            FileGone,
            MemoryError,
            *_driver_failures(self.engine.dialect),
        )
        self.outage = Outage()
        self.faults = Faults(Path(self.engine.url.database or "") if self.reads_inline else None)
        self._local = threading.local()
        self._is_closed = False
        self._cache = QueryCache()
        self._listeners = Listeners()
        self._connect_directly = partial(connect_directly, self.engine, settings)
        self._listener = InvalidationListener(
            partial(self._connect_directly, "trellis listener"), self._listeners, self._cache.clear
        )
        self.writer = Writer(
            self._open_for_writing,
            self.failures,
            self.outage,
            settings,
            self._listener,
            self._wait_for_other_processes,
            self.faults,
        )

    def listen(self) -> None:
        """Start to follow the commits of other processes, which `data_version` needs on PostgreSQL; SQLite needs no listener."""
        if not self.reads_inline:
            self._listener.start()

    def data_version(self) -> int | None:
        """Return a number for the state of the data: what is read from now on may be cached until the number changes.

        A write of this process has changed it by the time the write is acknowledged. Other processes' writes change it at once on
        SQLite, and on PostgreSQL within milliseconds, or within a second at worst; a change of a key has changed it in every
        process by the time the change is acknowledged. None means unknown: then cache nothing.
        """
        if not self.reads_inline:
            return self._listener.data_version()
        try:
            tx = self.acquire_reader()
            if (version := getattr(self._local, "data_version", None)) is None:
                version = self._local.data_version = SqliteDataVersion(tx)
            return int(version.read())
        except self.failures as error:
            self._close_faulty_reader(error)
            return None

    def last_commit(self) -> int | None:
        """Return a number that changes with each commit, including those of the request log; None if the database cannot be read.

        It takes a pragma on SQLite, and no query on PostgreSQL, where the number does not change with quiet writes.
        """
        if not self.reads_inline:
            return self._listener.data_version()
        try:
            return self.acquire_reader().data_version()
        except self.failures as error:
            self._close_faulty_reader(error)
            return None

    def key_version(self) -> int | None:
        """Return a number for the state of the keys, as of this thread's last call of `data_version`; None if it is unknown."""
        if not self.reads_inline:
            return self._listener.key_version()
        version: SqliteDataVersion | None = getattr(self._local, "data_version", None)
        return None if version is None else version.key_version

    def has_changed(self, shown: tuple[Shown, ...] | None, since: int, *, but_total: bool = False) -> bool:
        """Return whether something that an answer shows has changed since the data version under which it was read.

        With `but_total` the total of a list does not count: see `Shown.up_to`.

        Call it in the thread that has called `data_version`. If nothing has changed, the answer is right for that data version too.
        """
        if not self.reads_inline:
            return self._listener.changes.has_changed(shown, since, but_total=but_total)
        version: SqliteDataVersion | None = getattr(self._local, "data_version", None)
        return version is None or version.changes.has_changed(shown, since, but_total=but_total)

    def reading(self, *, snapshot: bool = True) -> "Reading":
        """Return a context for reading here: in a snapshot, or without one for a single statement. It may raise Refused (BUSY)."""
        return Reading(self, snapshot=snapshot)

    def read_single(self, work: Callable[[Transaction], T]) -> T:
        """Run a read of a single statement, which needs no snapshot around it. Raises Refused (BUSY) like `reading`."""
        if not self.reads_inline:
            with self.reading(snapshot=False) as tx:
                return work(tx)
        try:
            result = work(self.acquire_reader())
        except self.failures as error:
            self._close_faulty_reader(error)
            raise refuse_busy(error, self.faults, self.outage) from error
        if self.outage.is_on:
            self.outage.record_success()
        return result

    def acquire_reader(self) -> Transaction:
        """Return the connection for a read in this thread; call `release_reader` after the read."""
        if not self.reads_inline:
            return self._open_for_reading()
        if (tx := getattr(self._local, "reader", None)) is None:  # kept: taking one from a pool costs more than a read
            tx = self._local.reader = self._open_for_reading()
            tx.raw.execute("PRAGMA query_only=ON")
            self._local.checked_at = 0.0
            sqlite.call_often(tx.raw, tx.check_time)
        if (now := monotonic()) - self._local.checked_at > _CHECK_EVERY:
            tx.check_file()
            self._local.checked_at = now
        tx.brief_until = getattr(self._local, "brief_until", None)
        return tx

    @contextmanager
    def reading_briefly(self) -> Iterator[None]:
        """Let reads in this thread, that of an event loop, raise LongRead when they have found much, or take long."""
        self._local.brief_until = monotonic() + BRIEFLY
        try:
            yield
        finally:
            self._local.brief_until = None

    def release_reader(self, tx: Transaction) -> None:
        """Release a connection that `acquire_reader` returned. SQLite's stays open for the thread's next read."""
        if not self.reads_inline:
            if tx.raw.closed:
                tx.connection.invalidate()
                self.engine.dispose()  # whatever closed this connection has closed those in the pool too
            elif self._is_closed:
                tx.connection.invalidate()  # closes the connection: its pool is disposed of and would not
            tx.connection.close()

    def _open(self) -> Transaction:
        connection = self.engine.connect()
        raw: Any = connection.connection.driver_connection
        if not self.reads_inline:
            raw.longest = self.settings.database_write_timeout
        return Transaction(connection, raw, sqlite=self.reads_inline)

    def _open_for_reading(self) -> Transaction:
        tx = self._open()
        tx.cache = self._cache
        if not tx.sqlite:
            tx.raw.limit = self.settings.database_read_timeout
        return tx

    def _open_for_writing(self) -> Transaction:
        tx = self._open()
        try:
            self._prepare_for_writing(tx)
        except BaseException:
            tx.connection.invalidate()  # now: the pool would find out by itself later, and log a traceback
            tx.connection.close()
            raise
        return tx

    def _prepare_for_writing(self, tx: Transaction) -> None:
        if tx.sqlite:
            # In memory, SQLite keeps what it needs to roll a savepoint back as a list, which each statement walks from the
            # beginning: ten thousand changes in one transaction would take a hundred times as long as a thousand. With this pragma
            # it goes to a file beyond a certain size.
            sqlite.use_temporary_files(tx.raw)
            tx.check_file()  # now: a file that has been replaced by the first commit would be taken for the one that is open
        else:
            tx.raw.prepare_for_writes(limit := self.settings.database_write_timeout, limit + self.settings.job_timeout)

    def write(self, work: Callable[[Transaction], T], *, quiet: bool = False) -> Future[T]:
        """Hand a piece of work to the writer; the future is done once what the work wrote is durable.

        An exception that `work` raises becomes the future's, and everything that it wrote is rolled back. The exception is Refused
        (BUSY) if the work could not begin within `busy_timeout`, or if too many writes wait already; cancelling the future
        withdraws the work. If `work` raises Rollback, its value is the result, and everything is rolled back too. A `quiet` write
        does not change the data version: only for bookkeeping on which no cached response and no decision about a key depends.
        """
        return self.writer.submit(work, quiet=quiet)

    def _wait_for_other_processes(self, number: int, until: float) -> None:
        with self._connect_directly("trellis acknowledgement") as connection:  # reads may have all those of the pool
            self._listeners.wait_for_others(connection, number, until)

    def close(self) -> None:
        """Finish the waiting writes, and close all connections; those of reads that have not ended are closed when these end.

        On SQLite, other threads keep their connections for reads until they end.
        """
        self._is_closed = True
        self._listener.close()
        self.writer.close()
        self.close_reader()
        self.engine.dispose()

    def close_reader(self) -> None:
        """Close the connection kept for reads in this thread; the next read opens another."""
        if (tx := getattr(self._local, "reader", None)) is not None:
            del self._local.reader
            self._local.data_version = None
            tx.connection.close()

    def _close_faulty_reader(self, error: BaseException) -> None:
        """Close this thread's read connection if the error is a fault of the file: the next read opens the file as it is then."""
        if self.reads_inline and is_fault(error):
            self._cache.clear()
            with suppress(Exception):
                self.close_reader()

    def describe_engine(self) -> str:
        """Return the name and version of the database engine, such as `PostgreSQL 15.4`."""
        if self.reads_inline:
            return f"SQLite {sqlite.library_version()}"
        with self.reading() as tx:
            return f"PostgreSQL {str(tx.connection.execute(sa.text('SHOW server_version')).scalar_one()).split()[0]}"

    def try_to_write(self) -> Future[int]:
        """Write a row that nobody reads, in order to find out whether a fault is over; if it is, this is recorded in `faults`."""
        return self.write(lambda tx: tx.execute(_TRIAL, name="trial", last=0, total=0), quiet=True)


class Reading:
    """The context of one read. It is a class because a generator would cost as much as the read itself."""

    __slots__ = ("_snapshot", "_store", "_tx")

    def __init__(self, store: Store, *, snapshot: bool) -> None:
        self._store = store
        self._snapshot = snapshot
        self._tx: Transaction | None = None

    def __enter__(self) -> Transaction:
        try:
            tx = self._tx = self._store.acquire_reader()
            if self._snapshot:
                until, tx.brief_until = tx.brief_until, None  # only what reads may be interrupted: see `_end`
                tx.raw.execute("BEGIN" if tx.sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                tx.brief_until = until
        except Exception as error:
            self._end()
            self._store._close_faulty_reader(error)  # noqa: SLF001  # the store's own context
            raise refuse_busy(error, self._store.faults, self._store.outage) from error
        return tx

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._end()
        if error is not None and (isinstance(error, self._store.failures) or describe_lack(error)):
            self._store._close_faulty_reader(error)  # noqa: SLF001  # the store's own context
            raise refuse_busy(error, self._store.faults, self._store.outage) from error
        if self._store.outage.is_on:
            self._store.outage.record_success()

    def _end(self) -> None:
        if (tx := self._tx) is None:
            return
        tx.brief_until = None  # interrupted, ROLLBACK would leave the snapshot open for all reads to come
        try:
            if self._snapshot and not getattr(tx.raw, "closed", False):
                tx.raw.execute("ROLLBACK")
        except self._store.failures as error:
            log.warning("A read could not be ended: %s", error)
        finally:
            self._store.release_reader(tx)


def _driver_failures(dialect: Any) -> tuple[type[Exception], ...]:
    """Return the driver's errors for a database in trouble. psycopg's InternalError can mean a standby or damage, among others."""
    return sqlite.FAILURES if dialect.name == "sqlite" else (dialect.dbapi.OperationalError, dialect.dbapi.InternalError)
