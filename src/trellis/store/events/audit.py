"""The event log as a person searches it: the newest first, a bounded stretch at a time."""

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Member, Transaction
from trellis.store.events.log import Event
from trellis.store.tables import events

PATIENCE: Final = 0.03  # seconds
_STRETCH: Final = 2_000  # events; they are numbered without gaps
_COLUMNS: Final = tuple(events.c[name] for name in Event.__slots__)
_c = events.c


class Search(NamedTuple):
    """What a search has found. `next` is the number to go on before, if there may be more; `patient` is false if it ended early."""

    found: list[Event]
    next: int | None
    patient: bool = True


def search(
    tx: Transaction, filters: Mapping[str, Any], limit: int, before: int | None = None, patience: float = PATIENCE
) -> Search:
    """Search the log, the newest first.

    `filters` may hold operation, resource, resource_id, request_id, actor_type, actor_id, `since` and `until` (moments; the
    latter not included).
    """
    top, bottom = _reach(tx, filters, before)
    conditions = _conditions(filters)
    step = _STRETCH if conditions and "resource_id" not in filters else top
    deadline = time.perf_counter() + patience
    found: list[Event] = []
    while top > bottom:
        end = max(bottom, top - step)
        rows = tx.connection.execute(
            sa.select(*_COLUMNS)
            .where(_c.seq < top, _c.seq >= end, *conditions)
            .order_by(_c.seq.desc())
            .limit(limit + 1 - len(found))
        )
        found += [Event(*row) for row in rows]
        if len(found) > limit:
            return Search(found[:limit], found[limit - 1].seq)
        top = end
        if time.perf_counter() > deadline and top > bottom:
            return Search(found, top, patient=False)
    return Search(found, None)


def _reach(tx: Transaction, filters: Mapping[str, Any], before: int | None) -> tuple[int, int]:
    """Give the numbers between which the events of the asked time lie: up to but without the first, down to the second."""
    last = sa.select(_c.seq).order_by(_c.seq.desc()).limit(1)
    first = sa.select(_c.seq).order_by(_c.seq).limit(1)
    if until := filters.get("until"):
        last = sa.select(_c.seq).where(_c.at < until).order_by(_c.at.desc(), _c.seq.desc()).limit(1)
    if since := filters.get("since"):
        first = sa.select(_c.seq).where(_c.at >= since).order_by(_c.at, _c.seq).limit(1)
    top, bottom = (tx.connection.execute(statement).scalar() for statement in (last, first))
    if top is None or bottom is None:
        return 0, 0
    return (top + 1 if before is None else min(top + 1, before)), bottom


def _conditions(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    found = [_c[name] == filters[name] for name in ("operation", "resource", "resource_id", "request_id") if name in filters]
    if since := filters.get("since"):  # once more by the time itself: a clock that was set back has put it out of order
        found.append(_c.at >= since)
    if until := filters.get("until"):
        found.append(_c.at < until)
    actor = [(name, str(filters[f"actor_{name}"])) for name in ("type", "id") if f"actor_{name}" in filters]
    return found + [sa.cast(Member(_c.actor, name), sa.Text) == value for name, value in actor]


def of_request(tx: Transaction, operation: str, request_id: str, since: str, until: str) -> int | None:
    """Find the event that a request left in a span of time; give its number."""
    statement = (
        sa.select(_c.seq)
        .where(_c.at >= since, _c.at <= until, _c.request_id == request_id, _c.operation == operation)
        .order_by(_c.at.desc())
        .limit(1)
    )
    return tx.connection.execute(statement).scalar()
