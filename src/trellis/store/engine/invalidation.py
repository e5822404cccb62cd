"""The data version on PostgreSQL: a number for the state of the data, kept in memory, so that asking for it costs nothing.

Every commit on which a response or a decision about a key depends increments one counter, 'data version'. NOTIFY sends the new
value to all processes, with the entries of the change journal since the commit before. The writers' advisory lock puts the values
in the order of the commits. One connection per process listens. A response cached under a version is right until something that it
shows has changed, for these reasons:

- *Our own commits* are known before they are acknowledged: the writer reports them between the commit and its results.
- *Others' commits* arrive as notifications, which PostgreSQL sends once the commit is visible, usually within a millisecond.
- *A read that began before a commit* is cached under the version that was current before it began, never under a newer one. It
  may have seen newer data than that version; then it is only dropped too early.
- *What a commit has changed* is known if its journal entries begin at, or before, the last one known here; otherwise everything is
  dropped. One of our own commits may be known before others' earlier ones: the numbers that it skips are waited for.
- *A lost notification* does little harm: the counter is read every 0.4 seconds, and a version is valid for 0.9 seconds from the
  beginning of a reading that agreed with it. After that there is no version, whatever happened to the thread, network or server.
- *A change of a key* is acknowledged once no process can honour the old key: see `listeners`.
- *A lost connection* ends the version. The next connection begins with LISTEN, then reads the counter, then follows the commits.
  What happened in between is in the counter, and no version is ever used twice.
- *Rows changed by hand* do not increment the counter. `NOTIFY trellis_data` reports them; without it a version ends after a minute.
"""

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from trellis.store.engine.changes import MOST, Changes, NodeChange, next_stamp
from trellis.store.engine.listeners import VALID_FOR, Listeners
from trellis.store.engine.transaction import Transaction

log = logging.getLogger(__name__)

_READ_EVERY: Final = 0.4  # seconds between readings of the counter
_LONGEST: Final = 60.0  # seconds after which a version ends in any case
_RETRY_AFTER: Final = 0.5  # seconds until the next attempt to connect
_JOIN_TIMEOUT: Final = 5.0  # seconds for the thread to end

_LONGEST_TEXT: Final = 7900  # bytes of a notification; PostgreSQL takes 7,999
_MOST_MISSING: Final = 1000  # skipped numbers that are waited for
_TOLD_WITHIN: Final = 0.1  # seconds from a reading until the notification of a commit that it includes counts as lost
_UNKNOWN: Final = 2**62  # beyond any entry of the journal

# One round trip in each commit, and no notification if the transaction has written nothing. No kind of node can be called
# 'data version', since the name of a kind contains no space.
# `total` is the last entry of the change journal as of the commit. The notification contains the number and the entries since the
# last entry of the commit before, or since `known`, up to which this process knows them; null if there are too many of them.
_ANNOUNCE: Final = f"""
    WITH bounds AS (
        SELECT least(%(known)s, (SELECT total FROM counters WHERE name = 'data version')) AS first,
            (SELECT max(seq) FROM node_changes) AS last
    ), entries AS (
        SELECT json_build_array(kind, id, coalesce(parent_id, 0), change) AS entry
        FROM node_changes WHERE seq > (SELECT first FROM bounds) ORDER BY seq LIMIT {MOST + 1}
    ), counted AS (
        INSERT INTO counters (name, last, total) SELECT 'data version', 1, coalesce((SELECT last FROM bounds), 0)
        WHERE pg_current_xact_id_if_assigned() IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET last = counters.last + 1, total = excluded.total RETURNING last, total
    ), told AS (
        SELECT last, json_build_array(
            (SELECT first FROM bounds), total,
            (SELECT CASE WHEN count(*) <= {MOST} THEN coalesce(json_agg(entry), '[]'::json) END FROM entries)
        )::text AS what FROM counted
    )
    SELECT last, what, pg_notify(
        'trellis_data', last || ' ' || CASE WHEN octet_length(what) < {_LONGEST_TEXT} THEN what ELSE '' END
    ) FROM told
"""  # noqa: S608  # our own numbers
_INCREMENT: Final = "INSERT INTO counters (name, last, total) VALUES ('{}', 1, 0) ON CONFLICT (name) DO UPDATE SET last = last + 1"
_COUNT: Final = _INCREMENT.format("data version")
_COUNT_KEYS: Final = _INCREMENT.format("key version")
_MARK_KEYS: Final = """
    INSERT INTO counters (name, last, total) VALUES ('key version', %(number)s, 0)
    ON CONFLICT (name) DO UPDATE SET last = excluded.last
"""
_NOTIFY_KEYS: Final = "SELECT pg_notify('trellis_data', %(number)s::text || ' keys')"
_LISTEN: Final = "LISTEN trellis_data"

# A monotonic clock that keeps running while the machine is suspended, if the system has one.
monotonic: Final = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Commit(NamedTuple):
    """A commit: its data version, whether it has changed keys, and the entries of the change journal after `first` up to `last`.

    `changes` is None if the entries are not known.
    """

    number: int
    keys: bool = False
    first: int = 0
    last: int = 0
    changes: tuple[NodeChange, ...] | None = None

    @classmethod
    def read(cls, number: int, told: str, *, keys: bool = False) -> "Commit":
        """Parse what `_ANNOUNCE` sent about a commit, as `told`; "" if it sent only the number."""
        first, last, changes = orjson.loads(told) if told else (None, None, None)
        if first is None or last is None or changes is None:
            return cls(number, keys, last=last or 0)
        return cls(number, keys, first, last, tuple(NodeChange(*change) for change in changes))


def announce_commit(tx: Transaction, *, keys: bool, known: int) -> Commit | None:
    """Increment the data version and notify other processes, in the transaction that is about to be committed.

    `keys` means that the transaction changes keys, which other processes remember; `known` is the journal entry up to which this
    process knows the changes. Returns the commit on PostgreSQL, or None if nothing was written. Returns None on SQLite, where the
    counter is incremented and nobody is notified (see `data_version`).
    """
    if tx.sqlite:
        tx.raw.execute(_COUNT)
        if keys:
            tx.raw.execute(_COUNT_KEYS)
        return None
    row = tx.raw.execute(_ANNOUNCE, {"known": known}).fetchone()
    if row is None:
        return None
    if keys:
        tx.raw.execute(_MARK_KEYS, {"number": row[0]})
        tx.raw.execute(_NOTIFY_KEYS, {"number": row[0]})
    return Commit.read(int(row[0]), row[1], keys=keys)


class InvalidationListener:
    """Follows the commits of all processes in a thread of its own, over a connection that `connect` opens.

    `forget` is called when the database may be a different one than before: after each new connection, and if the counter has gone
    back, as after a backup was restored.
    """

    def __init__(self, connect: Callable[[], Any], listeners: Listeners, forget: Callable[[], None]) -> None:
        self._connect = connect
        self._listeners = listeners
        self._forget = forget
        self._lock = threading.Lock()
        self.changes = Changes()
        self._key_version = self.changes.stamp
        self._valid_until = 0.0  # on the monotonic clock
        self._number = -1  # the counter at the newest commit that is known; negative if none is
        self._keys = -1  # the newest known commit that has changed keys
        self._seq: int | None = None  # the last entry of the journal that is known
        self._missing: set[int] = set()  # lower numbers whose commits have not been reported
        self._long_missing: set[int] = set()  # the numbers that were missing when the counter was read last
        self._began = 0.0  # when everything was last counted as changed
        self._is_lost = False  # whether the loss of the connection has been logged
        self._thread: threading.Thread | None = None
        self._end: socket.socket | None = None  # closing it ends the thread's wait
        self._ending = False

    def data_version(self) -> int | None:
        """Return the data version, or None while it is unknown whether the data has changed."""
        return self.changes.stamp if self._number >= 0 and monotonic() < self._valid_until else None

    def key_version(self) -> int | None:
        """Return a number for the state of the keys, or None while it is unknown whether they have changed."""
        return self._key_version if self._number >= 0 and monotonic() < self._valid_until else None

    @property
    def known(self) -> int:
        """The journal entry up to which the changes are known; a very high number if that is unknown."""
        return _UNKNOWN if self._seq is None else self._seq

    def start(self) -> None:
        """Start the thread, unless it is running."""
        if self._thread is None:
            near, self._end = socket.socketpair()
            thread = threading.Thread(target=self._listen, args=(near,), name="trellis-listener", daemon=True)
            thread.start()  # raises RuntimeError if the system has no room for another thread: then it has not been started
            self._thread = thread

    def close(self) -> None:
        """Stop the thread and close its connection."""
        if self._thread is not None and self._end is not None:
            self._ending = True
            self._end.close()
            self._thread.join(_JOIN_TIMEOUT)
            self._thread = None

    def record_commit(self, commit: Commit, *, own: bool = True) -> None:
        """Record what a commit of this or another process has changed, unless it is known already.

        Notifications arrive in the order of the commits, including those of this process: a missing number means that a
        notification was lost. The writer reports this process's own commits too, perhaps before notifications of earlier commits
        have arrived.
        """
        with self._lock:
            try:
                self._record(commit, own=own)
            except MemoryError:
                self._number = -1  # nothing counts as current until everything has been counted as changed
                raise

    def _record(self, commit: Commit, *, own: bool) -> None:
        self._missing.discard(commit.number)
        if commit.keys and commit.number > self._keys:
            self._keys = commit.number
            self._key_version = next_stamp()
        if commit.number <= self._number:
            return
        skipped = commit.number - self._number - 1
        continues = self._seq is not None and commit.changes is not None and commit.first <= self._seq
        if self._number < 0 or (skipped and not own) or skipped > _MOST_MISSING:
            self._begin(commit.number, commit.last)
            return
        if continues:
            self.changes.add(commit.changes or ())
        else:
            self.changes.drop_everything()
        self._missing.update(range(self._number + 1, commit.number))
        self._number = commit.number
        self._seq = commit.last if self._seq is None else max(self._seq, commit.last)

    def _begin(self, number: int, seq: int | None = None) -> None:
        """Count everything as changed, and start again with the commit `number` and the journal up to `seq` as known."""
        self._number, self._seq = number, seq
        self._keys = -1  # another database, such as a standby that lacks the last commits, may use lower numbers again
        self._missing, self._long_missing = set(), set()
        self.changes.drop_everything()
        self._key_version = self.changes.stamp
        self._began = monotonic()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _listen(self, end: socket.socket) -> None:
        with end:
            while not self._ending:
                try:
                    self._follow(end)
                except Exception as error:  # noqa: BLE001  # whatever the error, the thread tries again
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
            self._forget()
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
                self._drain(connection)  # the driver may have read some with the result: they would not end the next wait

    def _drain(self, connection: Any, timeout: float = 0) -> None:
        """Process the notifications that have arrived; with a timeout, the next one that arrives within so many seconds."""
        dropped = 0
        for notification in connection.notifies(timeout=timeout, stop_after=1 if timeout else None):
            number, _, what = notification.payload.partition(" ")
            if not number.isdecimal():  # sent by hand
                with self._lock:
                    self._begin(self._number, self._seq)
                continue
            if what == "keys":
                self.record_commit(Commit(int(number), keys=True), own=False)
                dropped = int(number)
            else:
                self.record_commit(Commit.read(int(number), what), own=False)
        if dropped:
            self._listeners.confirm(connection, dropped)

    def _read_counter(self, connection: Any) -> None:
        """Compare the counter with the newest known commit: extend the version if they agree, begin another if they do not."""
        began, known = monotonic(), self._number
        number, seq, keys, dropped = self._listeners.read(connection)
        # Notifications of commits that the reading includes arrive just after it, unless they preceded this process's LISTEN.
        while 0 <= self._number < number and (left := began + _TOLD_WITHIN - monotonic()) > 0:
            self._drain(connection, left)
        with self._lock:
            # A value below that of a notification that has arrived meanwhile was just read earlier; a value below the one known
            # before the reading means that this is another database, such as a restored backup.
            is_other = number < self._number == known
            if is_other:
                self._forget()
            if is_other or number > self._number or self._missing & self._long_missing:
                self._begin(number, seq)
            elif began - self._began > _LONGEST:
                self._begin(self._number, self._seq)
            if keys > self._keys:
                self._keys, self._key_version = keys, next_stamp()
            self._long_missing = set(self._missing)
        if dropped is None:  # another process has waited in vain for this one, and deleted its row
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
    """Wait for so many seconds, or until one of the sources can be read."""
    # Unlike `select`, it accepts descriptors above 1,023, and unlike the others, it needs none itself: there may be none left.
    with selectors.PollSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        selector.select(max(0.0, seconds))
