"""How many events of each change set were purged, so that undoing the rest is not mistaken for undoing the whole change set.

The counts are stored in `counters`, as the totals of rows named after the change sets; most change sets have no such row.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from trellis.store.counters import add_to_total, read_total
from trellis.store.engine import Transaction
from trellis.store.tables import counters, events


def _name(change_set: int) -> str:
    return f"purged of change set {change_set}"


def count_purged_of_change_sets(tx: Transaction, bound: int) -> None:
    """Add the events up to a sequence number, which are about to be purged, to the counts of their change sets."""
    those = (events.c.seq <= bound, events.c.change_set.is_not(None))
    counted = sa.select(events.c.change_set, sa.func.count()).where(*those).group_by(events.c.change_set)
    for change_set, count in tx.connection.execute(counted).all():
        add_to_total(tx, _name(change_set), count)


def find_purged(tx: Transaction, change_set: int) -> int:
    """Return how many events of a change set were purged."""
    return read_total(tx, _name(change_set))


def forget_purged(tx: Transaction, change_sets: Iterable[int]) -> None:
    """Delete the counts of change sets that are being deleted."""
    tx.connection.execute(sa.delete(counters).where(counters.c.name.in_([_name(number) for number in change_sets])))
