"""Times of the last purge and the last backup. They help to tell a clock that has jumped from time that has passed."""

from typing import Final

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import counters, events, requests

PURGE: Final = "last purge"
BACKUP: Final = "last backup"


def find(tx: Transaction, what: str) -> int | None:
    """Return when `what` was last done, in Unix milliseconds; None if it is not recorded."""
    found: int | None = tx.connection.execute(sa.select(counters.c.last).where(counters.c.name == what)).scalar_one_or_none()
    return found


def record(tx: Transaction, what: str, at: int) -> None:
    """Record when `what` was done, in Unix milliseconds."""
    if not tx.connection.execute(sa.update(counters).where(counters.c.name == what).values(last=at)).rowcount:
        tx.connection.execute(sa.insert(counters).values(name=what, last=at, total=0))


def find_newest_timestamp(tx: Transaction) -> str | None:
    """Return the timestamp of the newest row in the event log and the request log; None if both are empty."""
    newest = [
        tx.connection.execute(sa.select(table.c.at).order_by(number.desc()).limit(1)).scalar_one_or_none()
        for table, number in ((events, events.c.seq), (requests, requests.c.id))
    ]
    return max((at for at in newest if at is not None), default=None)
