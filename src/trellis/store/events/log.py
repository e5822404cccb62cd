"""The rows of events: one for each successful write, in the order of the commits."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.counters import next_number
from trellis.store.engine import Statement, Transaction
from trellis.store.tables import counters, events


@dataclass(frozen=True, slots=True)
class Event:
    """One successful write. `seq` counts without gaps in the order of the commits; `undoes` is the event that it undoes."""

    seq: int
    at: str
    operation: str
    actor: Mapping[str, Any]
    request_id: str | None
    reason: str | None
    resource: str
    resource_id: int | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    changed: Sequence[str]
    touched: Sequence[Mapping[str, Any]]
    idempotency_key: str | None = None
    undoes: int | None = None


_JSON = ("actor", "before", "after", "changed", "touched")
_APPEND = Statement(sa.insert(events).values({column.name: bindparam(column.name) for column in events.columns}))


def append(tx: Transaction, event: Event) -> int:
    """Append an event, and return its sequence number; its own `seq` is ignored. Writes come one at a time, so none is skipped."""
    values = {name: getattr(event, name) for name in Event.__slots__}
    values["seq"] = next_number(tx, "events")
    for name in _JSON:
        values[name] = None if values[name] is None else tx.encode(values[name])
    tx.execute(_APPEND, **values)
    return int(values["seq"])


_SELECT = sa.select(*(events.c[name] for name in Event.__slots__))
_FILTERS: Final[Mapping[str, Callable[[Any], sa.ColumnElement[bool]]]] = {
    "operation": lambda value: events.c.operation == value,
    "resource": lambda value: events.c.resource == value,
    "resource_id": lambda value: events.c.resource_id == value,
    "since": lambda value: events.c.at >= value,
    "until": lambda value: events.c.at < value,
}


def read_page(tx: Transaction, filters: Mapping[str, Any], limit: int, after: int | None, *, newest_first: bool) -> list[Event]:
    """Read the events after a sequence number, or, with the newest first, before it; None begins at the first or the newest.

    `filters` may hold operation, resource, resource_id, `since` and `until` (timestamps; the latter not included).
    """
    statement = _SELECT.order_by(events.c.seq.desc() if newest_first else events.c.seq).limit(limit)
    for name, value in filters.items():
        statement = statement.where(_FILTERS[name](value))
    if after is not None:
        statement = statement.where(events.c.seq < after if newest_first else events.c.seq > after)
    return [Event(*row) for row in tx.connection.execute(statement)]


def find(tx: Transaction, seq: int) -> Event | None:
    """Read one event."""
    row = tx.connection.execute(_SELECT.where(events.c.seq == seq)).first()
    return None if row is None else Event(*row)


def find_undoing(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Find the last event that undid each of these: event → the one that undid it. Those that were not undone are left out."""
    if not seqs:
        return {}
    last = sa.select(events.c.undoes, sa.func.max(events.c.seq)).where(events.c.undoes.in_(seqs)).group_by(events.c.undoes)
    return {row[0]: row[1] for row in tx.connection.execute(last)}


_BOUNDS = Statement(
    sa.select(
        sa.select(sa.func.min(events.c.seq)).scalar_subquery(),
        sa.select(counters.c.last).where(counters.c.name == "events").scalar_subquery(),
    )
)


def find_bounds(tx: Transaction) -> tuple[int, int]:
    """Return the sequence numbers of the oldest event kept (of the next one if none is) and of the newest there ever was."""
    ((first, last),) = tx.fetch(_BOUNDS)
    return (first or (last or 0) + 1), last or 0


def find_timestamp(tx: Transaction, seq: int) -> str | None:
    """Return when an event happened; None if it is not kept."""
    found: str | None = tx.connection.execute(sa.select(events.c.at).where(events.c.seq == seq)).scalar_one_or_none()
    return found


def count(tx: Transaction, before: int | None = None, operations: Iterable[str] = ()) -> int:
    """Count the events that are kept; given `before`, those of some operations before that sequence number."""
    counted = sa.select(sa.func.count()).select_from(events)
    if before is not None:
        counted = counted.where(events.c.seq < before, events.c.operation.in_(list(operations)))
    return int(tx.connection.execute(counted).scalar_one())


def purge(tx: Transaction, before: str, most: int = 5000) -> int:
    """Delete the oldest events, as far as they are older than `before`, at most `most`; return their number.

    What is left has no gaps, so that a reader of the feed can be told what it has missed.
    """
    bound = 0
    for seq, at in tx.connection.execute(sa.select(events.c.seq, events.c.at).order_by(events.c.seq).limit(most)):
        if at >= before:
            break
        bound = seq
    return tx.connection.execute(sa.delete(events).where(events.c.seq <= bound)).rowcount if bound else 0
