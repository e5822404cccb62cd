"""The rows of events: one for each successful write, in the order of the commits."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.counters import next_number, next_numbers
from trellis.store.engine import IdIn, JsonMember, ListedAmong, Row, Statement, Transaction, WithoutIndex
from trellis.store.events.change_sets import count_purged
from trellis.store.events.inside import is_about_inside
from trellis.store.tables import counters, events


@dataclass(frozen=True, slots=True)
class Event:
    """One successful write. `seq` counts without gaps in the order of the commits; `undoes` is the event that it undoes.

    An event that resulted from a proposal has the proposal's number, and the actor who approved it. `traceparent` names the trace
    of the request, as W3C Trace Context defines it.
    """

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
    change_set: int | None = None
    proposal: int | None = None
    approved_by: Mapping[str, Any] | None = None
    traceparent: str | None = None


class OperationFilter(NamedTuple):
    """Which events are wanted, by operation.

    All events of the operations `always`; of the operations `if_only`, those that changed nothing but `members`; of the operations
    `unless_only`, those that changed anything else, or nothing.
    """

    always: frozenset[str]
    if_only: frozenset[str]
    unless_only: frozenset[str]
    members: frozenset[str]

    def build_condition(self) -> sa.ColumnElement[bool]:
        """Build the condition that an event is wanted."""
        only = ListedAmong(events.c.changed, self.members)
        wanted = [
            *((events.c.operation.in_(sorted(self.always)),) if self.always else ()),
            *((sa.and_(events.c.operation.in_(sorted(self.if_only)), only),) if self.if_only else ()),
            *((sa.and_(events.c.operation.in_(sorted(self.unless_only)), ~only),) if self.unless_only else ()),
        ]
        return sa.or_(sa.false(), *wanted)


_LARGE: Final = frozenset({"before", "after", "touched"})
_JSON = ("actor", "before", "after", "changed", "touched", "approved_by")
_APPEND = Statement(sa.insert(events).values({column.name: bindparam(column.name) for column in events.columns}))


def append(tx: Transaction, event: Event) -> int:
    """Append an event, and return its sequence number; its own `seq` is ignored. With one writer at a time, there are no gaps."""
    seq = next_number(tx, "events")
    tx.execute(_APPEND, **_encode(event, seq, tx))
    tx.newest_event_at = event.at
    return seq


def append_many(tx: Transaction, appended: Sequence[Event]) -> range:
    """Append events in their order, and return their sequence numbers. See `append`."""
    seqs = next_numbers(tx, "events", len(appended), more=0)
    tx.execute_many(_APPEND, [_encode(event, seq, tx) for seq, event in zip(seqs, appended, strict=True)])
    tx.newest_event_at = appended[-1].at
    return seqs


def _encode(event: Event, seq: int, tx: Transaction) -> dict[str, Any]:
    values = {name: getattr(event, name) for name in Event.__slots__} | {"seq": seq}
    for name in _JSON:
        values[name] = None if values[name] is None else tx.encode(values[name])
    return values


_NEWEST = Statement(sa.select(events.c.at).order_by(events.c.seq.desc()).limit(1))


def find_newest_timestamp(tx: Transaction) -> str:
    """Return the timestamp of the newest event, in the transaction of a write; an empty text if there are no events."""
    if tx.newest_event_at is None:  # read once for all writes that share a commit
        rows = tx.fetch(_NEWEST)
        tx.newest_event_at = rows[0][0] if rows else ""
    return tx.newest_event_at


_SELECT = sa.select(*(events.c[name] for name in Event.__slots__))
_LIGHT = tuple(sa.null().label(name) if name in _LARGE else events.c[name] for name in Event.__slots__)
_FIND = Statement(_SELECT.where(events.c.seq == bindparam("seq")))
_WITHOUT_TOUCHED = (sa.literal("[]").label(name) if name == "touched" else events.c[name] for name in Event.__slots__)
_FIND_WITHOUT_TOUCHED = Statement(sa.select(*_WITHOUT_TOUCHED).where(events.c.seq == bindparam("seq")))
_FILTERS: Final[Mapping[str, Callable[[Any], sa.ColumnElement[bool]]]] = {
    "wanted": lambda value: value.build_condition(),
    "operation": lambda value: events.c.operation == value,
    "resource": lambda value: events.c.resource == value,
    "resources": lambda value: events.c.resource.in_(sorted(value)),
    "resource_id": lambda value: events.c.resource_id == value,
    "since": lambda value: events.c.at >= value,
    "until": lambda value: events.c.at < value,
    "change_set": lambda value: events.c.change_set == value,
    "request_id": lambda value: events.c.request_id == value,
    "reason": lambda value: events.c.reason == value,
    "actor_type": lambda value: JsonMember(events.c.actor, "type") == value,
    "actor_id": lambda value: sa.cast(JsonMember(events.c.actor, "id"), sa.BigInteger) == value,
    "actor": lambda value: sa.and_(
        *(_FILTERS[name](given) for name, given in (("actor_type", value.type), ("actor_id", value.id)) if given is not None)
    ),
}
# Without a record, the index on resource and record would find all events of the resource, which would then have to be sorted.
_FILTERS_OF_MANY: Final = {
    **_FILTERS,
    "resource": lambda value: WithoutIndex(events.c.resource) == value,
    "resources": lambda value: WithoutIndex(events.c.resource).in_(sorted(value)),
}


def build_conditions(tx: Transaction, filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    """Build the conditions that an event passes some filters. See `select_page`."""
    build = _FILTERS if "resource_id" in filters else _FILTERS_OF_MANY
    return [is_about_inside(tx, value) if name == "inside" else build[name](value) for name, value in filters.items()]


def select_page(tx: Transaction, filters: Mapping[str, Any], after: int | None, *, newest_first: bool) -> sa.Select[Any]:
    """Select the events after a sequence number, or before it if newest first; None begins with the first or the newest.

    `filters` may contain wanted (an OperationFilter), operation, resource, resources (several), resource_id, change_set,
    request_id, reason, actor (with `type` and `id`, which may be None), actor_type, actor_id, since and until (timestamps; `until`
    itself is excluded), and inside (roots by resource, for events about nodes inside them).
    """
    statement = _SELECT.where(*build_conditions(tx, filters)).order_by(events.c.seq.desc() if newest_first else events.c.seq)
    if after is not None:
        statement = statement.where(events.c.seq < after if newest_first else events.c.seq > after)
    return statement


def read_page(tx: Transaction, filters: Mapping[str, Any], limit: int, after: int | None, *, newest_first: bool) -> list[Event]:
    """Read the events of `select_page`, at most `limit`, without `before`, `after` and `touched`, which are None."""
    statement = select_page(tx, filters, after, newest_first=newest_first).limit(limit)
    return [Event(*row) for row in tx.connection.execute(statement.with_only_columns(*_LIGHT))]


_AFTER = Statement(
    sa.select(*_LIGHT).where(events.c.seq > bindparam("after")).order_by(events.c.seq).limit(bindparam("most", type_=sa.Integer))
)


def list_after(tx: Transaction, seq: int, most: int) -> list[Event]:
    """Read the events after a sequence number, the oldest first, at most `most`, with as little of each as `read_page`."""
    return [_decode(row, tx) for row in tx.fetch(_AFTER, after=seq, most=most)]


def find(tx: Transaction, seq: int, *, with_touched: bool = True) -> Event | None:
    """Read one event; with an empty `touched`, which can have many megabytes, unless that is wanted."""
    rows = tx.fetch(_FIND if with_touched else _FIND_WITHOUT_TOUCHED, seq=seq)
    return _decode(rows[0], tx) if rows else None


_FIND_MANY = Statement(_SELECT.where(IdIn(events.c.seq, "seqs")))


def find_many(tx: Transaction, seqs: Sequence[int]) -> list[Event]:
    """Read some events, in the order of the given numbers; events that do not exist, or not any more, are left out."""
    found = {row[0]: _decode(row, tx) for row in tx.fetch(_FIND_MANY, seqs=tx.id_list(seqs))}
    return [found[seq] for seq in seqs if seq in found]


def _decode(row: Row, tx: Transaction) -> Event:
    values = dict(zip(Event.__slots__, row, strict=True))
    return Event(**values | {name: tx.decode(values[name]) for name in _JSON})


def find_newest_numbers(tx: Transaction, filters: Mapping[str, Any], most: int, *, after: int, before: int | None) -> list[int]:
    """Return the sequence numbers of the newest events that pass filters (see `select_page`), at most `most`, the newest first.

    Only events after `after` are among them, and given `before`, only events before that.
    """
    found = select_page(tx, filters, before, newest_first=True).where(events.c.seq > after).limit(most)
    return list(tx.connection.execute(found.with_only_columns(events.c.seq)).scalars())


def find_newest_before(tx: Transaction, at: str) -> int:
    """Return the sequence number of the newest event before a time; 0 if there is none."""
    found = sa.select(events.c.seq).where(events.c.at < at).order_by(events.c.at.desc(), events.c.seq.desc()).limit(1)
    return int(tx.connection.execute(found).scalar() or 0)


def _undoing() -> Statement:
    """Find the last undo of each event, the last undo of that undo, and so on, with one statement, however many there are."""
    last = sa.func.max(events.c.seq).label("by")
    first = sa.select(events.c.undoes.label("seq"), last).where(IdIn(events.c.undoes, "seqs")).group_by(events.c.undoes)
    line = first.cte("line", recursive=True)
    # Without GROUP BY, PostgreSQL would look through all events, the newest first, for each.
    next_one = sa.select(last).where(events.c.undoes == line.c.by).group_by(events.c.undoes).scalar_subquery()
    line = line.union(sa.select(line.c.by, next_one).where(line.c.by.is_not(None)))
    return Statement(sa.select(line.c.seq, line.c.by).where(line.c.by.is_not(None)))


_UNDOING = _undoing()


def find_undoing(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Find the last event that undid each of these, and each of those: event → the event that undid it.

    Events that were not undone are left out.
    """
    return {row[0]: row[1] for row in tx.fetch(_UNDOING, seqs=tx.id_list(sorted(seqs)))} if seqs else {}


_BOUNDS = Statement(
    sa.select(
        sa.select(sa.func.min(events.c.seq)).scalar_subquery(),
        sa.select(counters.c.last).where(counters.c.name == "events").scalar_subquery(),
    )
)


def find_span(tx: Transaction) -> tuple[int, int]:
    """Return the sequence numbers of the oldest event left (or of the next event if none is left) and of the newest one ever."""
    ((first, last),) = tx.fetch(_BOUNDS)
    return (first or (last or 0) + 1), last or 0


def find_timestamp(tx: Transaction, seq: int) -> str | None:
    """Return when an event happened; None if it does not exist or has been purged."""
    found: str | None = tx.connection.execute(sa.select(events.c.at).where(events.c.seq == seq)).scalar_one_or_none()
    return found


def count(tx: Transaction, before: int | None = None, operations: Iterable[str] = ()) -> int:
    """Count the events that are left; given `before`, only those of `operations` before that sequence number."""
    return tx.count(events, *([] if before is None else [events.c.seq < before, events.c.operation.in_(list(operations))]))


def purge(tx: Transaction, before: str, most: int = 5000) -> int:
    """Delete the oldest events, as far as they are older than `before`, at most `most`; return their number.

    The remaining events have no gaps, so the feed can report which events a reader has missed.
    """
    bound = 0
    for seq, at in tx.connection.execute(sa.select(events.c.seq, events.c.at).order_by(events.c.seq).limit(most)):
        if at >= before:
            break
        bound = seq
    if not bound:
        return 0
    count_purged(tx, bound)
    return tx.connection.execute(sa.delete(events).where(events.c.seq <= bound)).rowcount
