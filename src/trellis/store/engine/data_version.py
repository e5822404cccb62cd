"""The data version on SQLite: a number for the state of the data that a connection sees.

`PRAGMA data_version` changes with every commit of another connection, in this process or elsewhere, and asking costs little. But
most commits are of the request log, on which no response and no judgement of a key depends. So when the pragma has changed, the
counter is read that every other commit increments (see `invalidation.announce_commit`). It is read after the pragma, so that it
is never older than the pragma says.

Rows changed by hand increment nothing; for their sake a version ends after a few seconds.
"""

from time import monotonic
from typing import Final

import sqlalchemy as sa

from trellis.store.engine.transaction import Statement, Transaction
from trellis.store.tables import counters

LONGEST: Final = 5.0  # seconds after which a version ends in any case
_READ: Final = Statement(sa.select(counters.c.last).where(counters.c.name == "data version"))


class SqliteDataVersion:
    """The data version as one connection for reading sees it. It belongs to the thread of the connection."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._pragma: int | None = None
        self._number = -1  # the counter when it was read last
        self._began = 0.0  # when the version began, on the monotonic clock
        self._version = 0

    def read(self) -> int:
        """Return the data version."""
        pragma, now = self._tx.data_version(), monotonic()
        if pragma != self._pragma:
            rows = self._tx.fetch(_READ)
            number = int(rows[0][0]) if rows else 0
            self._pragma = pragma
            if number != self._number:
                self._begin(number, now)
        if now - self._began > LONGEST:
            self._begin(self._number, now)
        return self._version

    def _begin(self, number: int, now: float) -> None:
        """Begin a version: the counter, and below it the time, so that a version ended by time does not come back."""
        self._number, self._began = number, now
        self._version = number << 40 | int(now * 1000)
