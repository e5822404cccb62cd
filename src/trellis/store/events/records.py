"""Finding the events about some records: those after an event, and the last one about each record."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.counters import last_number
from trellis.store.engine import IdIn, NodeIdIn, Row, Statement, Transaction
from trellis.store.tables import change_sets, events, nodes


def find_newest_number(tx: Transaction) -> int:
    """Return the sequence number of the newest event; 0 if there has been none."""
    return last_number(tx, "events")


class RecordEvent(NamedTuple):
    """An event about a record. `began` is the operation that its change set began with, if it has one and this was read."""

    event: int
    operation: str
    at: str
    resource: str
    id: int | None
    began: str | None = None


_COLUMNS = (events.c.seq, events.c.operation, events.c.at, events.c.resource, events.c.resource_id)


def count_records(tx: Transaction, after: int, last: int) -> int:
    """Count the records that the events after `after` up to `last` are about or have touched; one counts once for each event."""
    found = sa.select(events.c.resource_id, events.c.touched).where(events.c.seq > after, events.c.seq <= last)
    return sum((number is not None) + len(touched) for number, touched in tx.connection.execute(found))


def find_since(tx: Transaction, seq: int, resources: Sequence[str], most: int) -> list[RecordEvent]:
    """Return the events after `seq` about these resources, the oldest first, at most `most`."""
    found = sa.select(*_COLUMNS).where(events.c.seq > seq, events.c.resource.in_(resources)).order_by(events.c.seq).limit(most)
    return [RecordEvent(*row) for row in tx.connection.execute(found)]


def find_by_numbers(tx: Transaction, seqs: Sequence[int]) -> list[RecordEvent]:
    """Return a few events; those that do not exist, or not any more, are left out."""
    return [RecordEvent(*row) for row in tx.connection.execute(sa.select(*_COLUMNS).where(events.c.seq.in_(seqs)))]


_SINCE_OF: Final = Statement(
    sa.select(*_COLUMNS)
    .where(events.c.resource == bindparam("resource"), IdIn(events.c.resource_id, "ids"), events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)


def find_since_of(tx: Transaction, seq: int, resource: str, ids: Sequence[int], most: int) -> list[RecordEvent]:
    """Return the events after `seq` about these records of a resource, the oldest first, at most `most`."""
    return [RecordEvent(*row) for row in tx.fetch(_SINCE_OF, after=seq, resource=resource, ids=tx.id_list(ids), most=most)]


def _with_beginning(found: sa.FromClause) -> sa.Select[Row]:
    """Select events with the operations that their change sets began with."""
    whole = found.outerjoin(change_sets, change_sets.c.id == events.c.change_set)
    return sa.select(*_COLUMNS, change_sets.c.operation).select_from(whole)


_BEFORE: Final[sa.BindParameter[int]] = bindparam("before")
_LAST_OF: Final = Statement(
    _with_beginning(events)
    .where(events.c.resource == bindparam("resource"), events.c.resource_id == bindparam("id"), events.c.seq < _BEFORE)
    .order_by(events.c.seq.desc())
    .limit(1)
)


def _last_of_nodes() -> Statement:
    """Find the newest event of each node in the index, however many events there are, and then read these events.

    They are found in a step of their own: otherwise PostgreSQL would go through all events, and find the newest ones again for
    each.
    """
    of = events.alias("of")
    own = of.c.resource == bindparam("kind"), of.c.resource_id == nodes.c.id, of.c.seq < _BEFORE
    newest = sa.select(sa.func.max(of.c.seq)).where(*own).correlate(nodes).scalar_subquery()
    each = sa.select(newest.label("seq")).select_from(nodes).where(NodeIdIn(nodes.c.id, "ids")).cte("each")
    each = each.prefix_with("MATERIALIZED")
    return Statement(_with_beginning(each.join(events, events.c.seq == each.c.seq)))


_LAST_OF_NODES: Final = _last_of_nodes()


def find_last_change(tx: Transaction, resource: str, number: int, before: int) -> RecordEvent | None:
    """Return the newest event about a record before the event `before`; None if there is none, or it was purged."""
    rows = tx.fetch(_LAST_OF, resource=resource, id=number, before=before)
    return RecordEvent(*rows[0]) if rows else None


def find_last_changes(tx: Transaction, kind: str, ids: Sequence[int], before: int) -> dict[int, RecordEvent]:
    """Return the newest event before the event `before` about each of some nodes that exist; nodes without one are left out."""
    found = [RecordEvent(*row) for row in tx.fetch(_LAST_OF_NODES, kind=kind, ids=tx.id_list(ids), before=before)]
    return {change.id: change for change in found if change.id is not None}
