"""Searching the event log: newest first, a limited number of events at a time."""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store import search_time
from trellis.store.engine import Transaction
from trellis.store.events.log import Event, build_conditions
from trellis.store.events.pages import EventPage
from trellis.store.tables import events

_CHUNK: Final = 2_000  # events that one statement examines; they are numbered without gaps
_COLUMNS: Final = tuple(events.c[name] for name in Event.__slots__)
_c = events.c


class Search(NamedTuple):
    """The result of a search.

    `next` is the sequence number before which to continue, if there may be more; `complete` is false if the time limit ended the
    search, and `searched_to` is then the time of the last event that it examined.
    """

    found: list[Event]
    next: int | None
    complete: bool = True
    searched_to: str | None = None


def search(tx: Transaction, filters: Mapping[str, Any], limit: int, before: int | None = None) -> Search:
    """Search the log, newest first.

    `filters` may contain wanted (a Wanted), operation, resource, resources (several), resource_id, request_id, change_set,
    actor_type, actor_id, since and until (timestamps; `until` itself is excluded).
    """
    top, bottom = _find_range(tx, filters, before)
    conditions = build_conditions(filters)  # including the time: if a clock was set back, times are not in the order of the numbers
    step = _CHUNK if conditions and not _is_indexed(filters) else top
    is_late = search_time.begin()
    page = EventPage(limit)
    while top > bottom:
        end = max(bottom, top - step)
        chosen = sa.select(*_COLUMNS).where(_c.seq < top, _c.seq >= end, *conditions).order_by(_c.seq.desc())
        page.read(tx, chosen)
        if page.more:
            return Search(page.found, page.found[-1].seq)
        top = end
        if top > bottom and is_late():
            examined = sa.select(_c.at).where(_c.seq >= top).order_by(_c.seq).limit(1)
            return Search(page.found, top, complete=False, searched_to=tx.connection.execute(examined).scalar())
    return Search(page.found, None)


def _is_indexed(filters: Mapping[str, Any]) -> bool:
    """Return whether an index finds the events: that on the change set, or that on resource and record, in this order."""
    return "change_set" in filters or ("resource_id" in filters and not filters.keys().isdisjoint({"resource", "resources"}))


def _find_range(tx: Transaction, filters: Mapping[str, Any], before: int | None) -> tuple[int, int]:
    """Return the range of sequence numbers for the requested time: `top`, which is excluded, and `bottom`, which is included."""
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


def find_by_request(tx: Transaction, operations: Collection[str], key: int, request_id: str, span: tuple[str, str]) -> int | None:
    """Return the number of the first event of some operations that a key's request has caused within a span of time."""
    since, until = span
    by_key = build_conditions({"actor_type": "key", "actor_id": key})
    statement = (
        sa.select(_c.seq)
        .where(_c.at >= since, _c.at <= until, _c.request_id == request_id, _c.operation.in_(sorted(operations)), *by_key)
        .order_by(_c.at, _c.seq)
        .limit(1)
    )
    return tx.connection.execute(statement).scalar()
