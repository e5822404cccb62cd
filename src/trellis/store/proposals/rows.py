"""The rows of proposals: calls that wait for approval, and calls whose approval has been decided."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Row, Statement, Transaction
from trellis.store.tables import proposals

_c = proposals.c
_OPEN: Final = "open"
_JSON: Final = ("counts", "closed_by")
_LARGE: Final = 64 * 1024  # bytes of content to keep of a closed proposal


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal as it is stored. Timestamps are ISO 8601 text, UTC. The content is read separately, since it may be large.

    `actor_id` is 0 for an actor without an id. `state` may be `open` although the proposal has expired meanwhile.
    """

    id: int
    handle: str
    state: str
    actor_type: str
    actor_id: int
    actor_name: str
    operation: str
    target: int | None
    about: str | None
    identity: str
    reason: str | None
    idempotency_key: str | None
    change_set: str | None
    etag: str | None
    counts: Mapping[str, int]
    revision: int
    digest: str
    created_at: str
    expires_at: str
    closed_at: str | None = None
    closed_by: Mapping[str, Any] | None = None
    closed_because: str | None = None
    event: int | None = None


class Held(NamedTuple):
    """How many proposals of an actor are open, and the total size of their content in bytes."""

    number: int
    size: int


_NAMES: Final = tuple(field.name for field in fields(Proposal))
_COLUMNS: Final = tuple(_c[name] for name in _NAMES)
_INSERT: Final = Statement(sa.insert(proposals).values({column.name: bindparam(column.name) for column in proposals.columns}))
_FIND: Final = Statement(sa.select(*_COLUMNS).where(_c.id == bindparam("id")))
_CONTENT: Final = Statement(sa.select(_c.content).where(_c.id == bindparam("id")))
_IS_OPEN: Final = sa.and_(_c.state == _OPEN, _c.expires_at > bindparam("now"))
_IS_OVERDUE: Final = sa.and_(_c.state == _OPEN, _c.expires_at <= bindparam("now"))
_BY_IDENTITY: Final = Statement(sa.select(*_COLUMNS).where(_c.identity == bindparam("identity"), _IS_OPEN).limit(1))
_HELD: Final = Statement(
    sa.select(sa.func.count(), sa.cast(sa.func.coalesce(sa.func.sum(_c.size), 0), sa.BigInteger)).where(
        _c.actor_type == bindparam("actor_type"), _c.actor_id == bindparam("actor_id"), _IS_OPEN
    )
)
_COUNT_OPEN: Final = Statement(sa.select(sa.func.count()).select_from(proposals).where(_IS_OPEN))
_OVERDUE: Final = Statement(sa.select(_c.id).where(_IS_OVERDUE).order_by(_c.expires_at, _c.id).limit(bindparam("most")))


def insert(tx: Transaction, proposal: Proposal, content: Mapping[str, Any]) -> None:
    """Insert a proposal, with its content."""
    values = {name: getattr(proposal, name) for name in _NAMES}
    text = tx.encode(content)
    encoded = {name: None if values[name] is None else tx.encode(values[name]) for name in _JSON}
    tx.execute(_INSERT, **values | encoded | {"content": text, "size": len(text.encode())})


def find(tx: Transaction, proposal: int) -> Proposal | None:
    """Read one proposal."""
    rows = tx.fetch(_FIND, id=proposal)
    return _decode(rows[0], tx) if rows else None


def find_content(tx: Transaction, proposal: int) -> dict[str, Any]:
    """Read the content of a proposal; {} if the proposal does not exist or its content has been removed."""
    rows = tx.fetch(_CONTENT, id=proposal)
    found: dict[str, Any] = tx.decode(rows[0][0]) if rows else {}
    return found


def find_open_by_identity(tx: Transaction, identity: str, now: str) -> Proposal | None:
    """Read the open proposal of a call, which is identified by its digest; None if there is none."""
    rows = tx.fetch(_BY_IDENTITY, identity=identity, now=now)
    return _decode(rows[0], tx) if rows else None


def _decode(row: Row, tx: Transaction) -> Proposal:
    values = dict(zip(_NAMES, row, strict=True))
    return Proposal(**values | {name: tx.decode(values[name]) for name in _JSON})


def measure_open(tx: Transaction, actor_type: str, actor_id: int, now: str) -> Held:
    """Return how many proposals of an actor are open, and how large their content is."""
    return Held(*map(int, tx.fetch(_HELD, actor_type=actor_type, actor_id=actor_id, now=now)[0]))


def count_open(tx: Transaction, now: str) -> int:
    """Count the proposals that are open."""
    return int(tx.fetch(_COUNT_OPEN, now=now)[0][0])


def find_overdue(tx: Transaction, now: str, most: int) -> list[int]:
    """Return the ids of at most `most` proposals that have expired and are not closed yet."""
    return [int(row[0]) for row in tx.fetch(_OVERDUE, now=now, most=most)]


def read_page(
    tx: Transaction, filters: Mapping[str, Any], limit: int, offset: int, *, now: str, newest_first: bool = True
) -> tuple[int, list[Proposal]]:
    """Read a page of proposals; return the number of proposals on all pages and the page.

    `filters` may contain state (as it is at `now`), operation, and actor (type and id).
    """
    conditions, params = _conditions(filters), {"now": now}
    total = tx.connection.execute(sa.select(sa.func.count()).select_from(proposals).where(*conditions), params).scalar_one()
    order = _c.id.desc() if newest_first else _c.id
    # First the ids, from indexes alone: rows contain content, which may be large, and SQLite reads through it to later columns.
    ids = sa.select(_c.id).where(*conditions).order_by(order).limit(limit).offset(offset)
    rows = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id.in_(ids)).order_by(order), params)
    return total, [Proposal(*row) for row in rows]


def _conditions(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if state := filters.get("state"):
        states = {"open": _IS_OPEN, "expired": sa.or_(_c.state == state, _IS_OVERDUE)}
        found.append(states.get(state, _c.state == state))
    if operation := filters.get("operation"):
        found.append(_c.operation == operation)
    if actor := filters.get("actor"):
        found += [_c.actor_type == actor[0], _c.actor_id == actor[1]]
    return found


def close(tx: Transaction, proposal: Proposal, result: Any = None) -> None:
    """Record that a proposal is closed: its state, when, by whom and why, and the result of its call.

    If the content is large, only the result is kept, and only if the result is not large itself.
    """
    content = find_content(tx, proposal.id) | {"result": result}
    text = tx.encode(content)
    if len(text.encode()) > _LARGE:
        text = tx.encode({"result": result})
    if len(text.encode()) > _LARGE:
        text = tx.encode({})
    values = {name: getattr(proposal, name) for name in ("state", "closed_at", "closed_by", "closed_because", "event")}
    closed = sa.update(proposals).where(_c.id == proposal.id).values(**values, content=text, size=len(text.encode()))
    tx.connection.execute(closed)


def purge(tx: Transaction, before: str, most_closed: int, most: int = 1000) -> int:
    """Delete proposals closed before a timestamp, and the oldest closed ones of each actor that has more than `most_closed`.

    Deletes at most `most` for each of the two reasons, and returns how many were deleted.
    """
    is_closed = _c.state != _OPEN
    rank = sa.func.row_number().over(partition_by=(_c.actor_type, _c.actor_id), order_by=_c.id.desc()).label("rank")
    ranked = sa.select(_c.id, rank).where(is_closed).subquery()
    old = sa.select(_c.id).where(is_closed, _c.closed_at < before).limit(most)
    too_many = sa.select(ranked.c.id).where(ranked.c.rank > most_closed).limit(most)
    return sum(tx.connection.execute(sa.delete(proposals).where(_c.id.in_(stale))).rowcount for stale in (old, too_many))
