"""The data version on SQLite: which state of the data a connection sees.

`PRAGMA data_version` changes with every commit of another connection, in this process or elsewhere, and asking costs little. Most
commits are of the request log, which no answer and no judgement of a key shows: so when it has changed, the row is read that every
other commit counts up (see `notices.tell`). The row is read after the pragma, so that it is never older than it.

Rows that were changed by hand count nothing up; for their sake a version ends after a few seconds.
"""

from time import monotonic
from typing import Final

import sqlalchemy as sa

from trellis.store.engine.transaction import Statement, Transaction
from trellis.store.tables import counters

LONGEST: Final = 5.0  # seconds after which a version ends in any case
_READ: Final = Statement(sa.select(counters.c.last).where(counters.c.name == "data version"))


class Observed:
    """What a connection for reading observes of others' commits. It belongs to the thread of the connection."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._pragma: int | None = None
        self._number = -1
        self._turned = 0.0
        self._version = 0

    def version(self) -> int:
        """Give the data version."""
        pragma, now = self._tx.version(), monotonic()
        if pragma != self._pragma:
            rows = self._tx.rows(_READ)
            number = int(rows[0][0]) if rows else 0
            self._pragma = pragma
            if number != self._number:
                self._turn(number, now)
        if now - self._turned > LONGEST:
            self._turn(self._number, now)
        return self._version

    def _turn(self, number: int, now: float) -> None:
        """Begin a version that no connection of this process has had before."""
        self._number, self._turned = number, now
        self._version = number << 40 | int(now * 1000)
