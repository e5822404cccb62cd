"""What happened: the event log, the request log, and the answers kept for idempotency keys."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.nodes import next_number
from trellis.store.tables import answers, counters, events, key_uses, request_hours, requests
from trellis.store.transaction import Statement, Transaction


@dataclass(frozen=True, slots=True)
class Event:
    """One successful write. `seq` counts without gaps in the order of the commits; `undoes` is the event it takes back."""

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
    """Write an event; its own `seq` is passed over and the next one given. Writes come one at a time, so none is skipped."""
    values = {name: getattr(event, name) for name in Event.__slots__}
    values["seq"] = next_number(tx, "events")
    for name in _JSON:
        values[name] = None if values[name] is None else tx.encoded(values[name])
    tx.change(_APPEND, **values)
    return int(values["seq"])


_SELECT = sa.select(*(events.c[name] for name in Event.__slots__))
_FILTERS: Final[Mapping[str, Callable[[Any], sa.ColumnElement[bool]]]] = {
    "operation": lambda value: events.c.operation == value,
    "resource": lambda value: events.c.resource == value,
    "resource_id": lambda value: events.c.resource_id == value,
    "since": lambda value: events.c.at >= value,
    "until": lambda value: events.c.at < value,
}


def event_page(tx: Transaction, filters: Mapping[str, Any], limit: int, after: int | None, *, newest_first: bool) -> list[Event]:
    """Read events behind a sequence number. `filters` may hold operation, resource, resource_id, since and until."""
    statement = _SELECT.order_by(events.c.seq.desc() if newest_first else events.c.seq).limit(limit)
    for name, value in filters.items():
        statement = statement.where(_FILTERS[name](value))
    if after is not None:
        statement = statement.where(events.c.seq < after if newest_first else events.c.seq > after)
    return [Event(*row) for row in tx.connection.execute(statement)]


def find_event(tx: Transaction, seq: int) -> Event | None:
    """Read one event."""
    row = tx.connection.execute(_SELECT.where(events.c.seq == seq)).first()
    return None if row is None else Event(*row)


def undoers(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Give, for each of some events that was taken back, the last event that did so."""
    if not seqs:
        return {}
    last = sa.select(events.c.undoes, sa.func.max(events.c.seq)).where(events.c.undoes.in_(seqs)).group_by(events.c.undoes)
    return {row[0]: row[1] for row in tx.connection.execute(last)}


_REACH = Statement(
    sa.select(
        sa.select(sa.func.min(events.c.seq)).scalar_subquery(),
        sa.select(counters.c.last).where(counters.c.name == "events").scalar_subquery(),
    )
)


def reach(tx: Transaction) -> tuple[int, int]:
    """Give the numbers of the oldest event that is kept, or of the next one if none is, and of the newest that there was."""
    ((first, last),) = tx.rows(_REACH)
    return (first or (last or 0) + 1), last or 0


def moment_of(tx: Transaction, seq: int) -> str | None:
    """Say when an event was."""
    found: str | None = tx.connection.execute(sa.select(events.c.at).where(events.c.seq == seq)).scalar_one_or_none()
    return found


def count_events(tx: Transaction, before: int | None = None, operations: Iterable[str] = ()) -> int:
    """Count the events that are kept; or those of some operations before a sequence number."""
    counted = sa.select(sa.func.count()).select_from(events)
    if before is not None:
        counted = counted.where(events.c.seq < before, events.c.operation.in_(list(operations)))
    return int(tx.connection.execute(counted).scalar_one())


def purge_events(tx: Transaction, before: str, most: int = 5000) -> int:
    """Delete the oldest events as long as they are older than `before`, at most `most`; give their number.

    What is left is without gaps, so that a reader can be told what it has missed.
    """
    bound = 0
    for seq, at in tx.connection.execute(sa.select(events.c.seq, events.c.at).order_by(events.c.seq).limit(most)):
        if at >= before:
            break
        bound = seq
    return tx.connection.execute(sa.delete(events).where(events.c.seq <= bound)).rowcount if bound else 0


# --- idempotency --------------------------------------------------------------------------------------------------

_ANSWER = Statement(
    sa.select(answers.c.fingerprint, answers.c.answer, answers.c.at).where(
        answers.c.key_id == bindparam("key"), answers.c.token == bindparam("token")
    )
)


def answer_of(tx: Transaction, key: int, token: str) -> tuple[str, Any, str] | None:
    """Find the answer kept for a key's idempotency token: fingerprint of the request, answer, moment."""
    rows = tx.rows(_ANSWER, key=key, token=token)
    return (rows[0][0], tx.decoded(rows[0][1]), rows[0][2]) if rows else None


def keep_answer(tx: Transaction, key: int, token: str, fingerprint: str, answer: Any, at: str) -> None:
    """Keep an answer, in place of an older one."""
    tx.connection.execute(sa.delete(answers).where(answers.c.key_id == key, answers.c.token == token))
    tx.connection.execute(
        sa.insert(answers).values(key_id=key, token=token, fingerprint=fingerprint, answer=tx.encoded(answer), at=at)
    )


# --- the request log ----------------------------------------------------------------------------------------------


class Request(NamedTuple):
    """One answered request. `path` has no query, `duration` is in microseconds, `error` is an errorCode."""

    at: str
    method: str
    path: str
    operation: str | None
    key_id: int | None
    address: str
    status: int
    duration: int
    request_id: str
    error: str | None


_TOGETHER: Final = 80  # requests in one statement; SQLite may be built to take no more than 999 values


@cache
def _logging(count: int, *, sqlite: bool) -> str:
    """Write one statement for many requests: row by row, writer and event loop would take turns with the interpreter's lock."""
    row = f"({', '.join('?' if sqlite else '%s' for _ in Request._fields)})"
    return f"INSERT INTO requests ({', '.join(Request._fields)}) VALUES {', '.join([row] * count)}"  # noqa: S608  # no values


_COUNT_USES = Statement(
    sa.text(
        "INSERT INTO key_uses (key_id, day, operation, status, times, last_at) "
        "VALUES (:key, :day, :operation, :status, :times, :last) "
        "ON CONFLICT (key_id, day, operation, status) DO UPDATE SET times = key_uses.times + excluded.times, "
        "last_at = CASE WHEN excluded.last_at > key_uses.last_at THEN excluded.last_at ELSE key_uses.last_at END"
    )
)
_COUNT_HOUR = Statement(
    sa.text(
        "INSERT INTO request_hours (hour, digit, times) VALUES (:hour, :digit, :times) "
        "ON CONFLICT (hour, digit) DO UPDATE SET times = request_hours.times + excluded.times"
    )
)


def log_requests(tx: Transaction, batch: Sequence[Request]) -> None:
    """Write answered requests; count what keys have used by day, and how much was asked in each hour."""
    for first in range(0, len(batch), _TOGETHER):
        part = batch[first : first + _TOGETHER]
        tx.raw.execute(_logging(len(part), sqlite=tx.sqlite), tuple(chain.from_iterable(part)))
    for hour, those in groupby(batch, key=_hour):
        rows = list(those)
        uses, last = Counter(map(_USE, rows)), dict(zip(map(_USE, rows), map(_AT, rows), strict=True))
        for use, times in uses.items():
            key, operation, status = use
            if key is not None:
                named = {"key": key, "day": hour[:10], "operation": operation or "", "status": status}
                tx.change(_COUNT_USES, **named, times=times, last=last[use])
        for digit in {status // 100 for _, _, status in uses}:
            times = sum(times for (_, _, status), times in uses.items() if status // 100 == digit)
            tx.change(_COUNT_HOUR, hour=hour, digit=digit, times=times)


def _hour(request: Request) -> str:
    return request.at[:13]


_AT = attrgetter("at")
_USE = attrgetter("key_id", "operation", "status")


def request_page(tx: Transaction, limit: int = 100) -> list[Request]:
    """Read the latest requests, the newest first."""
    columns = [requests.c[name] for name in Request._fields]
    return [Request(*row) for row in tx.connection.execute(sa.select(*columns).order_by(requests.c.id.desc()).limit(limit))]


def purge(
    tx: Transaction, *, successes_before: str, failures_before: str, answers_before: str, uses_before: str = "", most: int = 5000
) -> int:
    """Delete what is older than it is kept, at most `most` requests at a time; give the number of rows deleted."""
    old = sa.or_(
        sa.and_(requests.c.status < 400, requests.c.at < successes_before),
        sa.and_(requests.c.status >= 400, requests.c.at < failures_before),
    )
    stale = sa.select(requests.c.id).where(requests.c.at < max(successes_before, failures_before), old).limit(most)
    gone = tx.connection.execute(sa.delete(requests).where(requests.c.id.in_(stale))).rowcount
    gone += tx.connection.execute(sa.delete(key_uses).where(key_uses.c.day < uses_before[:10])).rowcount
    gone += tx.connection.execute(sa.delete(request_hours).where(request_hours.c.hour < uses_before[:13])).rowcount
    return gone + tx.connection.execute(sa.delete(answers).where(answers.c.at < answers_before)).rowcount
