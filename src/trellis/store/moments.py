"""When something was done last, such as a purge: kept so that a clock that has jumped can be told from time that has passed."""

from typing import Final

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import counters, events, requests

PURGE: Final = "last purge"
BACKUP: Final = "last backup"


def find(tx: Transaction, what: str) -> int | None:
    """Return when something was done last, in Unix milliseconds; None if that is not known."""
    found: int | None = tx.connection.execute(sa.select(counters.c.last).where(counters.c.name == what)).scalar_one_or_none()
    return found


def record(tx: Transaction, what: str, at: int) -> None:
    """Write when something was done, in Unix milliseconds."""
    if not tx.connection.execute(sa.update(counters).where(counters.c.name == what).values(last=at)).rowcount:
        tx.connection.execute(sa.insert(counters).values(name=what, last=at, total=0))


def find_newest_row(tx: Transaction) -> str | None:
    """Return the timestamp of the newest row of the event log and the request log; None if both are empty."""
    newest = [
        tx.connection.execute(sa.select(table.c.at).order_by(number.desc()).limit(1)).scalar_one_or_none()
        for table, number in ((events, events.c.seq), (requests, requests.c.id))
    ]
    return max((at for at in newest if at is not None), default=None)
