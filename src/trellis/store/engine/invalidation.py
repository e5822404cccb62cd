"""The data version on PostgreSQL: a number for the state of the data, kept in memory, so that asking for it costs nothing.

Every commit on which a response or the judgement of a key depends increments one counter, 'data version', and sends its new value
with NOTIFY. The writers' advisory lock makes the order of the values that of the commits. One connection per process listens.
Why a response cached under a version is right:

- *Our own commits* are known before they are acknowledged: the writer reports them between the commit and its results.
- *Others' commits* come as notifications, which PostgreSQL sends once the commit is visible; usually within a millisecond.
- *A read that began before a commit* is cached under the version that was taken before it began, never under a newer one. It
  may have seen more than that version; then it is only dropped too early.
- *A lost notification* is made up for: the counter is read every 0.4 seconds, and a version is valid for 0.9 seconds from the
  beginning of a reading that agreed with it. After that there is none, whatever has become of thread, network or server.
- *A change of a key* is acknowledged when no process can honour the old one: see `listeners`.
- *A lost connection* ends the version. The next connection begins with LISTEN, then reads the counter, then follows: what
  happened in between is in the counter, and no version ever comes back.
- *Rows changed by hand* increment nothing. `NOTIFY trellis_data` reports them; without it a version ends after a minute.
"""

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from trellis.store.engine.listeners import VALID_FOR, Listeners
from trellis.store.engine.transaction import Transaction

log = logging.getLogger(__name__)

_READ_EVERY: Final = 0.4  # seconds between readings of the counter
_LONGEST: Final = 60.0  # seconds after which a version ends in any case
_RETRY_AFTER: Final = 0.5  # seconds until the next attempt to connect
_JOIN_TIMEOUT: Final = 5.0  # seconds for the thread to end

# One round trip in each commit, and no notification where the transaction has written nothing. No kind of node can be called
# 'data version', since a kind's name has no blank in it.
_ANNOUNCE: Final = """
    WITH counted AS (
        INSERT INTO counters (name, last, total) SELECT 'data version', 1, 0 WHERE pg_current_xact_id_if_assigned() IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET last = counters.last + 1 RETURNING last
    )
    SELECT last, pg_notify('trellis_data', last::text) FROM counted
"""
_INCREMENT: Final = (
    "INSERT INTO counters (name, last, total) VALUES ('data version', 1, 0) ON CONFLICT (name) DO UPDATE SET last = last + 1"
)
_MARK_KEYS: Final = """
    INSERT INTO counters (name, last, total) VALUES ('key version', %(number)s, 0)
    ON CONFLICT (name) DO UPDATE SET last = excluded.last
"""
_NOTIFY_KEYS: Final = "SELECT pg_notify('trellis_data', %(number)s::text || ' keys')"
_LISTEN: Final = "LISTEN trellis_data"

# A monotonic clock that goes on while the machine is suspended, where there is one.
monotonic: Final = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def announce_commit(tx: Transaction, *, keys: bool) -> int | None:
    """Increment the data version and notify other processes, in the transaction that is about to be committed.

    `keys` says that it changes what other processes remember of keys. Returns the new value on PostgreSQL, None if nothing was
    written. On SQLite there is nobody to notify (see `data_version`): None is returned.
    """
    if tx.sqlite:
        tx.raw.execute(_INCREMENT)
        return None
    row = tx.raw.execute(_ANNOUNCE).fetchone()
    if row is None:
        return None
    if keys:
        tx.raw.execute(_MARK_KEYS, {"number": row[0]})
        tx.raw.execute(_NOTIFY_KEYS, {"number": row[0]})
    return int(row[0])


class InvalidationListener:
    """Follows the commits of all processes in a thread of its own, over a connection that `connect` makes."""

    def __init__(self, connect: Callable[[], Any], listeners: Listeners) -> None:
        self._connect = connect
        self._listeners = listeners
        self._lock = threading.Lock()
        self._version = 0  # only ever grows
        self._valid_until = 0.0  # on the monotonic clock
        self._number = -1  # the counter at the newest commit that is known
        self._began = 0.0  # when the version began
        self._is_lost = False  # whether the loss of the connection has been logged
        self._thread: threading.Thread | None = None
        self._end: socket.socket | None = None  # closing it ends the thread's wait
        self._ending = False

    def data_version(self) -> int | None:
        """Return the data version, or None while it is unknown whether the data have changed."""
        return self._version if monotonic() < self._valid_until else None

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            near, self._end = socket.socketpair()
            self._thread = threading.Thread(target=self._listen, args=(near,), name="trellis-listener", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the thread and close its connection."""
        if self._thread is not None and self._end is not None:
            self._ending = True
            self._end.close()
            self._thread.join(_JOIN_TIMEOUT)
            self._thread = None

    def record_commit(self, number: int) -> None:
        """Begin a new version for a commit of this or another process, given its value of the counter, unless it is known."""
        with self._lock:
            if number > self._number:
                self._begin(number)

    def _begin(self, number: int) -> None:
        self._number = number
        self._version += 1
        self._began = monotonic()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _listen(self, end: socket.socket) -> None:
        with end:
            while not self._ending:
                try:
                    self._follow(end)
                except Exception as error:  # noqa: BLE001  # whatever it is, it is tried again
                    self._log_loss(error)
                    _wait(_RETRY_AFTER, end)

    def _follow(self, end: socket.socket) -> None:
        """Follow the commits over one connection, until it is lost or `end` is closed."""
        connection = self._connect()
        try:
            connection.execute(_LISTEN)
            self._listeners.register(connection)
            with self._lock:
                self._begin(-1)
            self._read_counter(connection)
            self._log_return()
            self._take_notifications(connection, end)
        finally:
            self._valid_until = 0.0
            with suppress(Exception):
                if self._ending:
                    self._listeners.leave(connection)
                connection.close()

    def _take_notifications(self, connection: Any, end: socket.socket) -> None:
        due = monotonic() + _READ_EVERY
        while not self._ending:
            _wait(due - monotonic(), end, connection)
            self._drain(connection)
            if monotonic() >= due:
                due = monotonic() + _READ_EVERY
                self._read_counter(connection)
                self._drain(connection)  # the driver has read what came with the result: it would not end the next wait

    def _drain(self, connection: Any) -> None:
        dropped = 0
        for notification in connection.notifies(timeout=0):
            number, _, what = notification.payload.partition(" ")
            if not number.isdecimal():  # by hand
                with self._lock:
                    self._begin(self._number)
                continue
            self.record_commit(int(number))
            if what == "keys":
                dropped = int(number)
        if dropped:
            self._listeners.confirm(connection, dropped)

    def _read_counter(self, connection: Any) -> None:
        """Compare the counter with what is known: prolong the version if they agree, begin another if they do not."""
        began, known = monotonic(), self._number
        number, keys, dropped = self._listeners.read(connection)
        with self._lock:
            # A value below a notification that came meanwhile was read too early; one below what was known before the reading
            # means that the database is another one, such as a restored backup.
            differs = number > self._number or (number < self._number == known)
            if differs or began - self._began > _LONGEST:
                self._begin(number)
        if dropped is None:  # another process has waited in vain for this one
            self._listeners.register(connection)
        elif dropped >= keys or self._listeners.confirm(connection, keys):
            self._valid_until = began + VALID_FOR

    def _log_loss(self, error: Exception) -> None:
        if not self._is_lost:
            self._is_lost = True
            log.warning("Responses are not cached, since commits of other processes cannot be followed: %s", error)

    def _log_return(self) -> None:
        if self._is_lost:
            self._is_lost = False
            log.warning("Responses are cached again: commits of other processes are followed.")


def _wait(seconds: float, *sources: Any) -> None:
    """Wait for so long, or until one of the sources can be read."""
    with selectors.DefaultSelector() as selector:  # which, unlike `select`, takes file descriptors above 1,023
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        selector.select(max(0.0, seconds))
