"""Times of the last purge and the last backup. They help to distinguish a clock that has jumped from time that has passed."""

from typing import Final

import sqlalchemy as sa

from trellis.store.counters import find_last, set_counter
from trellis.store.engine import Transaction
from trellis.store.tables import events, requests

PURGE: Final = "last purge"
BACKUP: Final = "last backup"


def find(tx: Transaction, what: str) -> int | None:
    """Return when `what` was last done, in Unix milliseconds; None if it is not recorded."""
    return find_last(tx, what)


def record(tx: Transaction, what: str, at: int) -> None:
    """Record when `what` was done, in Unix milliseconds."""
    set_counter(tx, what, at)


def find_newest_timestamp(tx: Transaction) -> str | None:
    """Return the timestamp of the newest row in the event log and the request log; None if both are empty."""
    newest = [
        tx.connection.execute(sa.select(table.c.at).order_by(number.desc()).limit(1)).scalar_one_or_none()
        for table, number in ((events, events.c.seq), (requests, requests.c.id))
    ]
    return max((at for at in newest if at is not None), default=None)
