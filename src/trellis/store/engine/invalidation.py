"""The data version on PostgreSQL: which state of the data this process knows of, kept in memory, so that asking costs nothing.

Every commit that changes what an answer or a key can show counts up one row, 'data version', and tells the new number on a
channel. The advisory lock of the writers makes the order of the numbers that of the commits. One connection per process
listens. Why what is kept under a version is right:

- *Our own commits* are known before they are acknowledged: the writer says so between the commit and the answers.
- *Others' commits* come as notifications, which PostgreSQL sends once the commit can be seen; a millisecond later as a rule.
- *A read that began before a commit* is kept under the version that was taken before it began, never under a newer one. It
  may have seen more than that version; then it is only forgotten too early.
- *A notification that is lost* is made up for: the row is read every 0.4 seconds, and a version holds for one second from when a
  reading began that agreed with it. Past that there is none, however the thread, the network or the server are.
- *A connection that is lost* ends the version. The next one begins with LISTEN, then reads the row, then counts on: what
  happened in between is in the row, and no version ever comes back.
- *Rows that were changed by hand* count nothing up. `NOTIFY trellis_data` tells of them; without it the minute does, after
  which a version ends by itself.
"""

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from trellis.store.engine.transaction import Transaction

log = logging.getLogger(__name__)

_EVERY: Final = 0.4  # seconds between readings of the row
_HOLDS: Final = 1.0  # seconds for which a version holds after such a reading
_LONGEST: Final = 60.0  # seconds after which a version ends in any case
_AGAIN: Final = 0.5  # seconds until the next attempt to connect
_PATIENCE: Final = 5.0  # seconds for the thread to end

# One round trip in each commit, and none of it where the transaction has written nothing. No kind of node can be called
# 'data version', since its name would have a blank in it.
_TELL: Final = """
    WITH told AS (
        INSERT INTO counters (name, last, total) SELECT 'data version', 1, 0 WHERE pg_current_xact_id_if_assigned() IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET last = counters.last + 1 RETURNING last
    )
    SELECT last, pg_notify('trellis_data', last::text) FROM told
"""
_COUNT: Final = (
    "INSERT INTO counters (name, last, total) VALUES ('data version', 1, 0) ON CONFLICT (name) DO UPDATE SET last = last + 1"
)
_LISTEN: Final = "LISTEN trellis_data"
_READ: Final = "SELECT coalesce((SELECT last FROM counters WHERE name = 'data version'), 0)"


def tell(tx: Transaction, before: int) -> int | None:
    """Count up and notify, in the transaction that is about to be committed; give the number, None if nothing was written.

    On SQLite there is nobody to notify (see `observed`), and nothing was written if the connection has made no more changes
    than `before`.
    """
    if tx.sqlite:
        if tx.raw.total_changes != before:
            tx.raw.execute(_COUNT)
        return None
    row = tx.raw.execute(_TELL).fetchone()
    return None if row is None else int(row[0])


class Notices:
    """Listens in a thread of its own, over a connection that `connect` makes, and knows the data version."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._guard = threading.Lock()
        self._version = 0  # only ever counts up
        self._until = 0.0  # when the version ends, on the monotonic clock
        self._number = -1  # the newest commit that is known
        self._turned = 0.0
        self._lost = False
        self._thread: threading.Thread | None = None
        self._end: socket.socket | None = None  # closed, it ends the thread's waiting
        self._ending = False

    def version(self) -> int | None:
        """Give the data version, or None when nobody can say whether the data have changed."""
        return self._version if monotonic() < self._until else None

    def start(self) -> None:
        """Begin to listen."""
        if self._thread is None:
            near, self._end = socket.socketpair()
            self._thread = threading.Thread(target=self._listen, args=(near,), name="trellis-notices", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End, and let the connection go."""
        if self._thread is not None and self._end is not None:
            self._ending = True
            self._end.close()
            self._thread.join(_PATIENCE)
            self._thread = None

    def committed(self, number: int) -> None:
        """Take note of a commit, by its number: one of this process, or one that was told of."""
        with self._guard:
            if number > self._number:
                self._turn(number)

    def _turn(self, number: int) -> None:
        self._number = number
        self._version += 1
        self._turned = monotonic()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _listen(self, end: socket.socket) -> None:
        with end:
            while not self._ending:
                try:
                    self._follow(end)
                except Exception as error:  # noqa: BLE001  # whatever it is, it is tried again
                    self._complain(error)
                    _wait(_AGAIN, end)

    def _follow(self, end: socket.socket) -> None:
        """Follow the commits of all processes over one connection, until it breaks or the end comes."""
        connection = self._connect()
        try:
            connection.execute(_LISTEN)
            with self._guard:
                self._turn(-1)
            self._read(connection)
            self._relax()
            self._take(connection, end)
        finally:
            self._until = 0.0
            with suppress(Exception):
                connection.close()

    def _take(self, connection: Any, end: socket.socket) -> None:
        due = monotonic() + _EVERY
        while not self._ending:
            _wait(due - monotonic(), end, connection)
            self._hear(connection)
            if monotonic() >= due:
                due = monotonic() + _EVERY
                self._read(connection)
                self._hear(connection)  # what came with the answer would not end the waiting

    def _hear(self, connection: Any) -> None:
        for notice in connection.notifies(timeout=0):
            if notice.payload.isdecimal():
                self.committed(int(notice.payload))
            else:  # by hand
                with self._guard:
                    self._turn(self._number)

    def _read(self, connection: Any) -> None:
        """Compare with the row; let the version hold on if they agree, and change it if they do not."""
        began, known = monotonic(), self._number
        number = int(connection.execute(_READ).fetchone()[0])
        with self._guard:
            # Smaller than a number that came meanwhile: read too early. Smaller than the one before: the database is another.
            differs = number > self._number or (number < self._number == known)
            if differs or began - self._turned > _LONGEST:
                self._turn(number)
        self._until = began + _HOLDS

    def _complain(self, error: Exception) -> None:
        if not self._lost:
            self._lost = True
            log.warning("Nothing is answered from memory, since the database does not tell of changes: %s", error)

    def _relax(self) -> None:
        if self._lost:
            self._lost = False
            log.warning("Answers come from memory again: the database tells of changes.")


def _wait(seconds: float, *sources: Any) -> None:
    """Wait for that long, or until there is something to read."""
    with selectors.DefaultSelector() as waiting:  # which, unlike `select`, takes file descriptors above 1,023
        for source in sources:
            waiting.register(source, selectors.EVENT_READ)
        waiting.select(max(0.0, seconds))
