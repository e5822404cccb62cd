"""How many events of each change set were purged, so that undoing the rest is not mistaken for undoing the whole change set.

The counts are stored in `counters`, as the totals of rows named after the change sets; most change sets have no such row.
"""

from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import counters, events

_ADD: Final = Statement(
    sa.text(
        "INSERT INTO counters (name, last, total) VALUES (:name, 0, :count) "
        "ON CONFLICT (name) DO UPDATE SET total = counters.total + excluded.total"
    )
)
_READ: Final = Statement(sa.select(counters.c.total).where(counters.c.name == bindparam("name")))


def _name(change_set: int) -> str:
    return f"purged of change set {change_set}"


def count_purged_of_change_sets(tx: Transaction, bound: int) -> None:
    """Add the events up to a sequence number, which are about to be purged, to the counts of their change sets."""
    those = (events.c.seq <= bound, events.c.change_set.is_not(None))
    counted = sa.select(events.c.change_set, sa.func.count()).where(*those).group_by(events.c.change_set)
    for change_set, count in tx.connection.execute(counted).all():
        tx.execute(_ADD, name=_name(change_set), count=count)


def find_purged(tx: Transaction, change_set: int) -> int:
    """Return how many events of a change set were purged."""
    rows = tx.fetch(_READ, name=_name(change_set))
    return int(rows[0][0]) if rows else 0


def forget_purged(tx: Transaction, change_sets: Iterable[int]) -> None:
    """Delete the counts of change sets that are being deleted."""
    tx.connection.execute(sa.delete(counters).where(counters.c.name.in_([_name(number) for number in change_sets])))
