"""The rows of change sets: events that belong together.

How many events of a change set were purged is counted, so that undoing the rest is not mistaken for undoing the whole change set.
The counts are stored in `counters`, as the totals of rows named after the change sets; most change sets have no such row.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.counters import add_to_total, next_number, read_total
from trellis.store.engine import Statement, Transaction, WithoutIndex
from trellis.store.tables import change_sets, counters, events

_c = change_sets.c
_AT_ONCE: Final = 500
_BY_NAME: Final = Statement(
    sa.select(_c.id).where(
        _c.actor_type == bindparam("actor_type"), _c.actor_id == bindparam("actor_id"), _c.name == bindparam("name")
    )
)
_INSERT: Final = Statement(sa.insert(change_sets).values({column.name: bindparam(column.name) for column in change_sets.columns}))


def open_change_set(tx: Transaction, actor: Mapping[str, Any], name: str | None, now: str, operation: str) -> int:
    """Return the id of an actor's change set with this name, which is created if it does not exist; without a name, of a new one.

    `operation` is the name of the operation that causes the events, directly or indirectly.
    """
    owner = {"actor_type": actor["type"], "actor_id": actor["id"] or 0}
    if name is not None and (rows := tx.fetch(_BY_NAME, **owner, name=name)):
        return int(rows[0][0])
    number = next_number(tx, "change_sets")
    tx.execute(_INSERT, **owner, id=number, name=name, at=now, operation=operation)
    return number


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """A change set: its actor (`actor_id` is 0 for an actor without an id), and how many of its events have been purged."""

    actor_type: str
    actor_id: int
    purged: int


def find_change_set(tx: Transaction, number: int) -> ChangeSet | None:
    """Read a change set; None if it does not exist."""
    row = tx.connection.execute(sa.select(_c.actor_type, _c.actor_id).where(_c.id == number)).first()
    return None if row is None else ChangeSet(row[0], row[1], read_total(tx, _name_purged(number)))


def count_of_change_set(tx: Transaction, number: int, resources: Collection[str] | None = None) -> int:
    """Count the events of a change set that have not been purged; given `resources`, only events about these."""
    about = [] if resources is None else [WithoutIndex(events.c.resource).in_(sorted(resources))]
    return tx.count(events, events.c.change_set == number, *about)


def count_purged(tx: Transaction, bound: int) -> None:
    """Add the events up to a sequence number, which are about to be purged, to the counts of their change sets."""
    those = (events.c.seq <= bound, events.c.change_set.is_not(None))
    counted = sa.select(events.c.change_set, sa.func.count()).where(*those).group_by(events.c.change_set)
    for change_set, count in tx.connection.execute(counted).all():
        add_to_total(tx, _name_purged(change_set), count)


def _name_purged(change_set: int) -> str:
    return f"purged of change set {change_set}"


def purge_change_sets(tx: Transaction, before: str, most: int = 5000) -> int:
    """Delete change sets that began before a time and have no events left, at most `most`; return their number."""
    is_in_use = sa.exists().where(events.c.change_set == _c.id)
    stale = sa.select(_c.id).where(_c.at < before, ~is_in_use).order_by(_c.id).limit(most)
    gone = list(tx.connection.execute(stale).scalars())
    for first in range(0, len(gone), _AT_ONCE):
        batch = gone[first : first + _AT_ONCE]
        tx.connection.execute(sa.delete(counters).where(counters.c.name.in_(map(_name_purged, batch))))
        tx.connection.execute(sa.delete(change_sets).where(_c.id.in_(batch)))
    return len(gone)
