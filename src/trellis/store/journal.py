"""What happened: the event log, the request log, and the answers kept for idempotency keys."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.nodes import next_number
from trellis.store.tables import answers, events, requests
from trellis.store.transaction import Statement, Transaction


@dataclass(frozen=True, slots=True)
class Event:
    """One successful write. `seq` counts without gaps in the order of the commits."""

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


def event_page(tx: Transaction, filters: Mapping[str, Any], limit: int, after: int | None, *, newest_first: bool) -> list[Event]:
    """Read events behind a sequence number. `filters` may hold operation, resource and resource_id."""
    statement = (
        sa.select(*(events.c[name] for name in Event.__slots__))
        .order_by(events.c.seq.desc() if newest_first else events.c.seq)
        .limit(limit)
    )
    for name, value in filters.items():
        statement = statement.where(events.c[name] == value)
    if after is not None:
        statement = statement.where(events.c.seq < after if newest_first else events.c.seq > after)
    return [Event(*row) for row in tx.connection.execute(statement)]


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


_COLUMNS = ", ".join(Request._fields)
_NUMBERS = {"key_id", "status", "duration"}


def _batched(values: Iterable[str], rows: str) -> str:
    """Write one statement for a whole batch: row by row, writer and event loop would take turns with the interpreter's lock."""
    return f"INSERT INTO requests ({_COLUMNS}) SELECT {', '.join(values)} FROM {rows}"  # noqa: S608  # names of columns, no values


_LOG = {
    True: _batched((f"json_extract(value, '$[{n}]')" for n in range(len(Request._fields))), "json_each(:batch)"),
    False: _batched(
        (f"(value ->> {n})::{'bigint' if name in _NUMBERS else 'text'}" for n, name in enumerate(Request._fields)),
        "jsonb_array_elements(%(batch)s::jsonb)",
    ),
}


def log_requests(tx: Transaction, batch: Sequence[Request]) -> None:
    """Write answered requests."""
    tx.raw.execute(_LOG[tx.sqlite], {"batch": tx.encoded([tuple(request) for request in batch])})


def request_page(tx: Transaction, limit: int = 100) -> list[Request]:
    """Read the latest requests, the newest first."""
    columns = [requests.c[name] for name in Request._fields]
    return [Request(*row) for row in tx.connection.execute(sa.select(*columns).order_by(requests.c.id.desc()).limit(limit))]


def purge(tx: Transaction, *, successes_before: str, failures_before: str, answers_before: str, most: int = 5000) -> int:
    """Delete what is older than it is kept, at most `most` requests at a time; give the number of rows deleted."""
    old = sa.or_(
        sa.and_(requests.c.status < 400, requests.c.at < successes_before),
        sa.and_(requests.c.status >= 400, requests.c.at < failures_before),
    )
    stale = sa.select(requests.c.id).where(requests.c.at < max(successes_before, failures_before), old).limit(most)
    gone = tx.connection.execute(sa.delete(requests).where(requests.c.id.in_(stale))).rowcount
    return gone + tx.connection.execute(sa.delete(answers).where(answers.c.at < answers_before)).rowcount
