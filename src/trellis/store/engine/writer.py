"""The one writer of a process: a thread that runs writes one after another, and commits writes that wait together in one commit."""

import gc
import logging
import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from trellis.errors import Refused, drop_tracebacks
from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.engine.faults import Faults, describe_lack, is_fault
from trellis.store.engine.invalidation import InvalidationListener, announce_commit
from trellis.store.engine.listeners import LEASE
from trellis.store.engine.outage import Outage, Unacknowledged, refuse_busy, refuse_closed, refuse_full, refuse_late
from trellis.store.engine.transaction import Rollback, Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

WRITE_LOCK: Final = 0x7472656C6C6973  # PostgreSQL's advisory lock, which all writers take: 'trellis' in ASCII
_LOCK_NOT_AVAILABLE: Final = "55P03"  # PostgreSQL's code for a lock that could not be had in time
_TOGETHER: Final = 64  # writes that may share one commit
_BATCH_SECONDS: Final = 0.02  # after which no further write joins a commit
_LARGE_WAL: Final = 64 * 2**20  # bytes of SQLite's write-ahead log from which on it is emptied
_READERS: Final = 2.0  # seconds that this waits for readers, and other writes for it
_EMPTY_AGAIN: Final = 60.0  # seconds until it is tried again, if readers kept it from that


@dataclass(slots=True)
class _Job:
    work: Callable[[Transaction], Any]
    future: Future[Any]
    quiet: bool
    until: float  # on the monotonic clock: the job does not begin later than that
    changes_keys: bool = False
    result: Any = None
    error: BaseException | None = None

    def begin(self) -> bool:
        """Mark the job as running and return True, unless it was withdrawn or its time has passed."""
        if time.monotonic() >= self.until:
            self.refuse()
            return False
        return self.future.set_running_or_notify_cancel()

    def refuse(self) -> None:
        """Refuse the job because its time has passed, unless it was withdrawn."""
        if self.future.set_running_or_notify_cancel():
            self.error = refuse_late()
            self.settle()

    def settle(self) -> None:
        if self.error is None:
            self.future.set_result(self.result)
        else:
            if isinstance(self.error, Refused):
                drop_tracebacks(self.error)
            self.future.set_exception(self.error)


@dataclass(slots=True)
class WriterCounts:
    """What a writer counts for monitoring: commits, the writes in them, and seconds. Its thread counts; any thread may read."""

    commits: int = 0
    writes: int = 0
    committing: float = 0.0  # seconds from the beginning of transactions to their end, without waiting for the lock
    waiting: float = 0.0  # seconds of waiting for the lock that the writers of all processes share


class Writer:
    """A thread with a connection of its own, which is opened for the first write.

    `open_connection` opens the connection. `failures` are the errors for a database that is busy or cannot be reached; `outage`
    logs them, and `faults` records faults of the database. The settings limit how many writes may wait (quiet ones always may), and
    within how many seconds each must begin: a write waits behind others, and for the lock that the writers of all processes share.

    On PostgreSQL, each commit that was not quiet is reported to `listener` before the writes in it are acknowledged.
    `wait_for_others` is called, in a thread of its own, with the data version of a commit that has changed keys and the time until
    which it may wait; the writes that have changed the keys are acknowledged when it returns.
    """

    def __init__(
        self,
        open_connection: Callable[[], Transaction],
        failures: tuple[type[Exception], ...],
        outage: Outage,
        settings: Settings,
        listener: InvalidationListener,
        wait_for_others: Callable[[int, float], None],
        faults: Faults,
    ) -> None:
        self._open_connection = open_connection
        self._failures = failures
        self._outage = outage
        self._timeout = settings.busy_timeout
        self._room = settings.write_queue
        self._listener = listener
        self._wait_for_others = wait_for_others
        self._waiting = ThreadPoolExecutor(1, "trellis-acknowledgement")  # it starts its thread when needed
        self._faults = faults
        self.counts = WriterCounts()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._guard = threading.Lock()
        self._busy_since: float | None = None  # on the monotonic clock
        self._empty_at = 0.0  # on the monotonic clock: SQLite's write-ahead log is not emptied before that

    def submit(self, work: Callable[[Transaction], T], *, quiet: bool) -> Future[T]:
        """Queue a piece of work: see `Store.write`. It is refused if the writer was closed or, unless it is `quiet`, is full."""
        future: Future[T] = Future()
        with self._guard:
            if self._is_closed:
                future.set_exception(refuse_closed())
            elif not quiet and self.is_full():
                future.set_exception(refuse_full())
            else:
                if self._thread is None:
                    thread = threading.Thread(target=self._serve, name="trellis-writer", daemon=True)
                    thread.start()  # raises RuntimeError if the system has no room for another thread: the next write tries again
                    self._thread = thread
                self._jobs.put(_Job(work, future, quiet, time.monotonic() + self._timeout))
        return future

    @property
    def waiting(self) -> int:
        """How many writes are waiting."""
        return self._jobs.qsize()

    def busy_seconds(self) -> float:
        """Return for how many seconds the writer has been working on its current commit; 0 while it waits for work."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def is_full(self) -> bool:
        """Return whether as many writes are waiting as are allowed to."""
        return self._jobs.qsize() >= self._room

    def check_room(self) -> None:
        """Raise Refused (BUSY) if a write would be refused because too many are waiting already."""
        if self.is_full():
            raise refuse_full()

    def close(self) -> None:
        """Finish the waiting writes, and stop the thread. Later writes are refused."""
        with self._guard:
            self._is_closed = True
            if self._thread is not None:
                self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()
        self._waiting.shutdown()

    def _serve(self) -> None:
        tx: Transaction | None = None
        while (job := self._jobs.get()) is not None:
            batch: list[_Job] = []
            number: int | None = None
            self._busy_since = time.monotonic()
            try:
                if tx is None:
                    tx = self._open_connection()
                    if tx.sqlite:
                        tx.raw.execute("PRAGMA busy_timeout=0")  # `_begin` waits by itself
                number = self._commit_together(tx, job, batch)
                if self._outage.is_on and batch:
                    self._outage.record_success()
            except BaseException as error:  # noqa: BLE001  # whatever the error, nobody must wait for a future for ever
                if not batch and not job.future.done() and job.future.set_running_or_notify_cancel():
                    batch.append(job)
                refusal = refuse_busy(error, self._faults, self._outage)
                for failed in batch:
                    failed.result, failed.error = None, refusal
                self._discard(tx)
                tx = None
            self._busy_since = None
            self._settle(batch, number)
            job = None  # until the next write comes, nothing of this one stays in memory
            batch.clear()
            if tx is not None and tx.file is not None and tx.file.wal_size > _LARGE_WAL:
                self._empty_wal(tx, tx.file.wal_size)
        if tx is not None:
            tx.connection.close()

    def _empty_wal(self, tx: Transaction, size: int) -> None:
        """Empty SQLite's write-ahead log. SQLite itself does so only at a moment when nobody reads, which may never come."""
        if time.monotonic() < self._empty_at:
            return
        try:
            if not sqlite.empty_wal(tx.raw, _READERS):
                self._empty_at = time.monotonic() + _EMPTY_AGAIN
                log.warning("The write-ahead log has %d MiB, and long reads keep it from being emptied.", size // 2**20)
        except self._failures as error:  # the next write meets it too, and reports it
            log.warning("The write-ahead log could not be emptied: %s", error)

    def _settle(self, batch: list[_Job], number: int | None) -> None:
        """Acknowledge the jobs of a commit; those that have changed keys only once no process remembers the old keys."""
        remembered = [job for job in batch if job.changes_keys] if number is not None else []
        for job in batch:
            if job not in remembered:
                job.settle()
        if number is not None and remembered:
            later = remembered, number, time.monotonic() + LEASE
            try:
                self._waiting.submit(self._settle_later, *later)
            except RuntimeError:  # the system has no room for another thread
                self._settle_later(*later)

    def _settle_later(self, batch: list[_Job], number: int, until: float) -> None:
        try:
            self._wait_for_others(number, until)
        except Exception as error:  # noqa: BLE001  # whatever the error, the lease ends by itself
            log.warning("Other processes could not be asked whether they have noticed a change of a key: %s", error)
            time.sleep(max(0.0, until - time.monotonic()))
        for job in batch:
            job.settle()

    def _commit_together(self, tx: Transaction, first: _Job, batch: list[_Job]) -> int | None:
        """Run a job and those that wait behind it in one transaction, each in a savepoint. Jobs that begin are added to `batch`.

        Returns the data version of the commit; None on SQLite, or if the commit does not change it.
        """
        began = time.monotonic()
        has_begun = self._begin(tx, first)
        opened = time.monotonic()
        self.counts.waiting += opened - began
        if not has_begun:
            first.refuse()  # regardless of this clock: PostgreSQL's may be a millisecond ahead
            return None
        tx.newest_event_at = None
        tx.taken.clear()
        tx.read_keys.clear()
        tx.block_changes.clear()
        try:
            has_written = changes_data = False
            job: _Job | None = first
            while job is not None:
                if job.begin():
                    batch.append(job)
                    self._set_savepoint(tx, again=len(batch) > 1)
                    stays, changes = self._run(tx, job)
                    has_written |= stays
                    changes_data |= changes
                job = self._take_another() if len(batch) < _TOGETHER and time.monotonic() - opened < _BATCH_SECONDS else None
            tx.write_taken()
            keys = any(one.changes_keys for one in batch)
            commit = announce_commit(tx, keys=keys, known=self._listener.known) if changes_data else None
            tx.check_file()
            if has_written:
                self._commit(tx)
            else:
                tx.raw.execute("ROLLBACK")
            tx.check_file()
            self.counts.commits += has_written
            self.counts.writes += len(batch) if has_written else 0
            self.counts.committing += time.monotonic() - opened
            if has_written and self._faults.reason is not None:
                self._faults.record_success()
            if commit is None:
                return None
            try:
                self._listener.record_commit(commit)
            except MemoryError as error:  # the commit has been made, and its notification will be taken in again
                raise Unacknowledged from error
            return commit.number
        except BaseException:
            tx.taken.clear()
            with suppress(Exception):
                tx.raw.execute("ROLLBACK")
            raise

    def _commit(self, tx: Transaction) -> None:
        try:
            tx.raw.execute("COMMIT")
        except self._failures as error:
            if tx.sqlite:  # it has rolled back
                raise
            raise Unacknowledged from error

    def _take_another(self) -> _Job | None:
        """Take the next job if one is waiting."""
        try:
            job = self._jobs.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            self._jobs.put(None)  # `close` was called: the thread stops after this batch
        return job

    def _begin(self, tx: Transaction, first: _Job) -> bool:
        """Begin a transaction with the lock that all writers share; return False if the first job does not get the lock in time."""
        if first.future.cancelled() or (left := first.until - time.monotonic()) <= 0:
            return False
        if not tx.sqlite:
            usual, tx.raw.limit = tx.raw.limit, left + 1
            try:
                wait = f"SET LOCAL lock_timeout = '{max(1, int(left * 1000))}ms'"
                # In one round trip. Statements that are sent together cannot be prepared.
                tx.raw.execute(f"BEGIN; {wait}; SELECT pg_advisory_xact_lock({WRITE_LOCK})", prepare=False)
            except self._failures as error:
                if getattr(error, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                    raise
                tx.raw.execute("ROLLBACK")
                return False
            finally:
                tx.raw.limit = usual
            return True
        # SQLite's own busy handler sleeps for up to 100 ms, while a busy process takes the lock again and again: try more often.
        while True:
            try:
                tx.raw.execute("BEGIN IMMEDIATE")
            except self._failures as error:
                if "locked" not in str(error):
                    raise
                if first.future.cancelled() or time.monotonic() >= first.until:
                    return False
                time.sleep(random.uniform(0.0005, 0.002))  # noqa: S311  # jitter, not a secret
            else:
                return True

    @staticmethod
    def _set_savepoint(tx: Transaction, *, again: bool) -> None:
        """Begin the savepoint of a job. With `again`, first release that of the job before; the commit releases the last one."""
        if not again:
            tx.raw.execute("SAVEPOINT job")
        elif tx.sqlite:
            tx.raw.execute("RELEASE SAVEPOINT job")
            tx.raw.execute("SAVEPOINT job")
        else:  # in one round trip
            tx.raw.execute("RELEASE SAVEPOINT job; SAVEPOINT job", prepare=False)

    def _run(self, tx: Transaction, job: _Job) -> tuple[bool, bool]:
        """Run one job in its savepoint; return whether its writes are kept, and whether they may change the data version."""
        tx.changes_keys = False
        taken, changes_before = tx.taken.copy(), tx.total_changes()
        gc.disable()  # scanning what a large write has made so far would stop all threads; nearly all is freed without it
        try:
            job.result = job.work(tx)
        except BaseException as error:  # raised again where the future is awaited
            if is_fault(error):
                if not tx.sqlite:
                    tx.raw.close()  # `_discard` then drops the pool too: after a failover, new ones reach the new primary
                raise  # nothing of this batch can be committed
            tx.raw.execute("ROLLBACK TO SAVEPOINT job")
            tx.taken = taken
            if isinstance(error, Rollback):
                job.result = error.value
            elif (not tx.sqlite and isinstance(error, self._failures)) or describe_lack(error):
                # For example, a lock could not be obtained. The other jobs can go on.
                job.error = refuse_busy(error, self._faults, self._outage)
            else:
                job.error = error
            return False, False
        finally:
            gc.enable()
        job.changes_keys = tx.changes_keys
        has_changed = not tx.sqlite or tx.total_changes() != changes_before  # on PostgreSQL, `announce_commit` finds it out
        return True, has_changed and not job.quiet

    def _discard(self, tx: Transaction | None) -> None:
        if tx is not None:
            with suppress(Exception):
                if getattr(tx.raw, "closed", False):
                    tx.connection.engine.dispose()  # whatever closed this connection has closed those in the pool too
                tx.connection.invalidate()
                tx.connection.close()
