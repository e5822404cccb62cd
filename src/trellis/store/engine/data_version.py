"""The data version on SQLite: a number for the state of the data that a connection sees.

`PRAGMA data_version` changes with every commit of another connection, in this process or elsewhere, and costs little. But most
commits only write the request log, on which no response and no decision about a key depends. Commits on which one depends increment
a counter (see `invalidation.announce_commit`). When the pragma has changed, this counter is read after it, so that the counter is
never older than the pragma's value; new entries of the change journal are read after the counter.

A row that is changed by hand does not increment the counter. Therefore everything counts as changed after a few seconds.
"""

from time import monotonic
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine.changes import MOST, Changes, NodeChange
from trellis.store.engine.transaction import Statement, Transaction
from trellis.store.tables import counters, node_changes

LONGEST: Final = 5.0  # seconds after which everything counts as changed in any case
_j = node_changes.c
_COUNTERS: Final = Statement(
    sa.select(
        *(sa.select(counters.c.last).where(counters.c.name == name).scalar_subquery() for name in ("data version", "key version"))
    )
)
_LAST: Final = Statement(sa.select(sa.func.max(_j.seq)))
# Includes the entry that was read last, in order to check that the journal still contains it.
_SINCE: Final = Statement(
    sa.select(_j.seq, _j.kind, _j.id, sa.func.coalesce(_j.parent_id, 0), _j.change)
    .where(_j.seq >= bindparam("since"))
    .order_by(_j.seq)
    .limit(MOST + 1)
)


class SqliteDataVersion:
    """The data version as one read connection sees it. Only the thread of the connection may use it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._pragma: int | None = None
        self._number = -1  # the counter when it was read last
        self._keys = -1
        self._seq = 0  # the last entry of the journal that was read
        self._began = 0.0  # when everything last counted as changed, on the monotonic clock
        self.changes = Changes()
        self.key_version = self.changes.stamp

    def read(self) -> int:
        """Return the data version."""
        pragma, now = self._tx.data_version(), monotonic()
        if pragma != self._pragma:
            number, keys = (last or 0 for last in self._tx.fetch(_COUNTERS)[0])
            if number != self._number or self._pragma is None:
                self._follow(number, now)
            if keys != self._keys:
                self._keys, self.key_version = keys, self.changes.stamp
            self._pragma = pragma
        if now - self._began > LONGEST:
            self._drop_everything(now)
        return self.changes.stamp

    def _follow(self, number: int, now: float) -> None:
        """Record the changes that the journal lists since it was read last."""
        begins, is_other = self._number < 0, number <= self._number
        if is_other:  # this is another database, such as a restored backup
            self._tx.cache.clear()
        rows = [] if begins or is_other else self._tx.fetch(_SINCE, since=self._seq)
        if not rows or rows[0][0] != self._seq or len(rows) > MOST:
            self._drop_everything(now)
        else:
            self.changes.add(NodeChange(*row[1:]) for row in rows[1:])
            self._seq = rows[-1][0]
        self._number = number  # last: if there is no memory, or a read fails, the next call starts again

    def _drop_everything(self, now: float) -> None:
        """Start again at the journal's last entry: all changes up to it precede whatever is read from now on."""
        self._seq = self._tx.fetch(_LAST)[0][0] or 0
        self.changes.drop_everything()
        self.key_version, self._began = self.changes.stamp, now
