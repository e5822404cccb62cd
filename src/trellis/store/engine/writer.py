"""The one writer of a process: a thread that runs writes one after another, and commits those that wait together as one."""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from trellis.errors import Refused
from trellis.store.engine.invalidation import announce_commit
from trellis.store.engine.transaction import Rollback, Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

_WRITE_LOCK: Final = 0x7472656C6C6973  # PostgreSQL's advisory lock, which all writers take: 'trellis' in ASCII
_BATCH: Final = 64  # writes that may share one commit
_BATCH_SECONDS: Final = 0.02  # after which no further write joins a commit


@dataclass(slots=True)
class _Job:
    work: Callable[[Transaction], Any]
    future: Future[Any]
    quiet: bool
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """A thread with a connection of its own, opened with the first write.

    `open_connection` opens the connection. `failures` are the driver's errors for a database that is busy or out of reach, and
    `lock_timeout` is for how many seconds the writer waits for those of other processes. `on_commit` is called with the data
    version of each commit on PostgreSQL that was not quiet, before the writes in it are acknowledged.
    """

    def __init__(
        self,
        open_connection: Callable[[], Transaction],
        failures: tuple[type[Exception], ...],
        lock_timeout: int,
        on_commit: Callable[[int], None],
    ) -> None:
        self._open_connection = open_connection
        self._failures = failures
        self._lock_timeout = lock_timeout
        self._on_commit = on_commit
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def submit(self, work: Callable[[Transaction], T], *, quiet: bool) -> Future[T]:
        """Queue a piece of work; the future is done once what it wrote is durable. Unless `quiet`, it changes the data version."""
        future: Future[T] = Future()
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="trellis-writer", daemon=True)
                    self._thread.start()
        self._jobs.put(_Job(work, future, quiet))
        return future

    def close(self) -> None:
        """Finish the writes that wait, and stop the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        tx: Transaction | None = None
        while (job := self._jobs.get()) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            batch = [job]
            try:
                if tx is None:
                    tx = self._open_connection()
                    if tx.sqlite:
                        tx.raw.execute("PRAGMA busy_timeout=0")  # `_begin` waits by itself
                self._commit_together(tx, batch)
            except BaseException as error:  # noqa: BLE001  # whatever it was, the futures must not wait for ever
                log.warning("A commit failed: %s", error)
                refusal = refuse_busy(error)
                for failed in batch:
                    failed.result, failed.error = None, refusal
                self._discard(tx)
                tx = None
            for done in batch:
                done.settle()
        if tx is not None:
            tx.connection.close()

    def _commit_together(self, tx: Transaction, batch: list[_Job]) -> None:
        """Run the first job and those that wait behind it in one transaction, each in a savepoint; add these to `batch`."""
        self._begin(tx)
        try:
            opened = time.monotonic()
            changes_before = tx.raw.total_changes if tx.sqlite else 0
            has_written = self._run(tx, batch[0])
            quiet = batch[0].quiet
            while len(batch) < _BATCH and time.monotonic() - opened < _BATCH_SECONDS:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    self._jobs.put(None)  # `close` was called: the thread stops after this batch
                    break
                if job.future.set_running_or_notify_cancel():
                    batch.append(job)
                    has_written |= self._run(tx, job)
                    quiet &= job.quiet
            number = announce_commit(tx, changes_before) if has_written and not quiet else None
            tx.raw.execute("COMMIT" if has_written else "ROLLBACK")
            if number is not None:
                self._on_commit(number)
        except BaseException:
            with suppress(Exception):
                tx.raw.execute("ROLLBACK")
            raise

    def _begin(self, tx: Transaction) -> None:
        if not tx.sqlite:
            tx.raw.execute("BEGIN")
            tx.raw.execute(f"SET LOCAL lock_timeout = '{self._lock_timeout}s'")
            tx.raw.execute(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
            return
        # SQLite's own busy handler sleeps for up to 100 ms, in which a busy process takes the lock again and again: try more often.
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                tx.raw.execute("BEGIN IMMEDIATE")
            except self._failures as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.0005, 0.002))  # noqa: S311  # jitter, not a secret
            else:
                return

    @staticmethod
    def _run(tx: Transaction, job: _Job) -> bool:
        """Run one job in a savepoint; return whether what it wrote stays."""
        tx.raw.execute("SAVEPOINT job")
        try:
            job.result = job.work(tx)
        except BaseException as error:  # noqa: BLE001  # it is raised where the future is awaited
            if isinstance(error, Rollback):
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
                    tx.connection.engine.dispose()  # what closed this connection has closed those in the pool too
                tx.connection.invalidate()
                tx.connection.close()


def refuse_busy(error: BaseException) -> Refused:
    """Log an error of the database, and return the refusal that says so without details."""
    log.error("The database could not be used: %s", error)
    return Refused("BUSY", "The database is busy or cannot be reached. Nothing was changed as far as we know; try again.")
