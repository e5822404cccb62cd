"""Searching the event log: a limited number of events at a time, and for a limited time."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import sqlalchemy as sa

from trellis.store import log_search
from trellis.store.engine import Statement, Transaction
from trellis.store.events.log import Event, build_conditions, find_newest_before, find_timestamp
from trellis.store.events.pages import EventPage
from trellis.store.log_search import SearchResult
from trellis.store.tables import events

_CHUNK: Final = (
    2_000  # events that the first statement examines, and each further one twice as many; they are numbered without gaps
)
_LARGEST: Final = 16 * _CHUNK
_COLUMNS: Final = tuple(events.c[name] for name in Event.__slots__)
_c = events.c


def search(
    tx: Transaction,
    filters: Mapping[str, Any],
    limit: int,
    beyond: int | None = None,
    *,
    newest_first: bool = True,
    longest: float | None = None,
) -> SearchResult[Event, int]:
    """Search the log, for `longest` seconds or the time that pages of the panel have.

    `filters` are those of `select_page`, and `beyond` is where to continue: only events after this number, or before it if newest
    first.
    """
    first, last = _find_span(tx, filters)
    if beyond is not None:
        first, last = (first, min(last, beyond - 1)) if newest_first else (max(first, beyond + 1), last)
    conditions = build_conditions(
        tx, filters
    )  # including the time: if a clock was set back, times are not in the order of the numbers
    step = _CHUNK if conditions and not _is_indexed(filters) else last - first + 1
    is_late = log_search.start_clock(longest)
    page = EventPage(limit)
    while first <= last:
        low, high = (max(first, last - step + 1), last) if newest_first else (first, min(last, first + step - 1))
        chosen = sa.select(*_COLUMNS).where(_c.seq.between(low, high), *conditions)
        page.read(tx, chosen.order_by(_c.seq.desc() if newest_first else _c.seq))
        if page.more:
            return SearchResult(page.found, page.found[-1].seq)
        first, last = (first, low - 1) if newest_first else (high + 1, last)
        if first <= last and is_late():
            reached = low if newest_first else high
            return SearchResult(page.found, reached, complete=False, searched_to=find_timestamp(tx, reached))
        step = min(2 * step, _LARGEST)
    return SearchResult(page.found, None)


def _is_indexed(filters: Mapping[str, Any]) -> bool:
    """Return whether an index finds the events: that on the change set, or that on resource and record, in this order."""
    return "change_set" in filters or ("resource_id" in filters and not filters.keys().isdisjoint({"resource", "resources"}))


_ENDS: Final = Statement(
    sa.select(
        sa.select(sa.func.min(_c.seq)).scalar_subquery(),
        sa.select(sa.func.max(_c.seq)).scalar_subquery(),
    )
)


def _find_span(tx: Transaction, filters: Mapping[str, Any]) -> tuple[int, int]:
    """Return the first and the last sequence number to examine, from the requested time."""
    first, last = (number or 0 for number in tx.fetch(_ENDS)[0])  # what is there, even if the counter of the events is wrong
    if since := filters.get("since"):
        found = sa.select(_c.seq).where(_c.at >= since).order_by(_c.at, _c.seq).limit(1)
        first = tx.connection.execute(found).scalar() or last + 1
    if until := filters.get("until"):
        last = find_newest_before(tx, until)
    return first, last


def find_by_request(tx: Transaction, operations: Collection[str], key: int, request_id: str, span: tuple[str, str]) -> int | None:
    """Return the number of the first event of some operations that a key's request has caused within a span of time."""
    since, until = span
    by_key = build_conditions(tx, {"actor_type": "key", "actor_id": key})
    statement = (
        sa.select(_c.seq)
        .where(_c.at >= since, _c.at <= until, _c.request_id == request_id, _c.operation.in_(sorted(operations)), *by_key)
        .order_by(_c.at, _c.seq)
        .limit(1)
    )
    return tx.connection.execute(statement).scalar()
