"""The delivery log: searching it, reading a delivery with its attempts, and purging."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, get_args

import sqlalchemy as sa

from trellis.store import log_search
from trellis.store.engine import Transaction, WithoutIndex
from trellis.store.log_search import SearchResult
from trellis.store.tables import attempts, deliveries, webhooks
from trellis.store.webhooks.outbox import COLUMNS, Attempt, Delivery, State
from trellis.timestamps import shift_timestamp

_c = deliveries.c
_STATES: Final = get_args(State)
_STRETCH: Final = 5_000  # deliveries
_LAG: Final = timedelta(minutes=10)  # by which ids and creation times may be out of order


def find(tx: Transaction, delivery: int) -> Delivery | None:
    """Read one delivery."""
    row = tx.connection.execute(sa.select(*COLUMNS).where(_c.id == delivery)).first()
    return Delivery(*row) if row else None


def search(tx: Transaction, filters: Mapping[str, Any], limit: int, before: int | None = None) -> SearchResult[Delivery, int]:
    """Search the deliveries, newest first.

    `filters` may contain webhook_id, state, type, seq, `since` and `until` (creation times; `until` is not included).
    """
    leading = [_c.webhook_id == filters["webhook_id"]] if "webhook_id" in filters else []
    others = [WithoutIndex(_c[name]) == filters[name] for name in ("state", "type") if name in filters]
    others += [_c.created_at >= filters["since"]] if "since" in filters else []
    others += [_c.created_at < filters["until"]] if "until" in filters else []
    top, bottom = _find_id_range(tx, filters, before)
    if (by_index := _conditions_by_index(tx, filters, leading)) is not None:
        return _page(_read(tx, [*by_index, *others], WithoutIndex(_c.id), top, bottom, limit + 1), limit)
    is_late = log_search.start_clock()
    found: list[Delivery] = []
    while top > bottom:
        end = _end(tx, [*leading, _c.id < top, _c.id >= bottom]) if others else None
        found += _read(tx, [*leading, *others], _c.id, top, end or bottom, limit + 1 - len(found))
        if end is None or len(found) > limit:
            break
        top = end
        if top > bottom and is_late():
            return SearchResult(found, top, complete=False)
    return _page(found, limit)


def _conditions_by_index(tx: Transaction, filters: Mapping[str, Any], webhook: list[sa.ColumnElement[bool]]) -> list[Any] | None:
    """Return the conditions for the index on state, webhook and event; None if the filters are not selective enough for it."""
    if "seq" in filters:  # looked up for each state and each webhook
        return [
            _c.state.in_(_STATES),
            *(webhook or [_c.webhook_id.in_([*_list_webhooks_with_deliveries(tx)])]),
            _c.seq == filters["seq"],
        ]
    if "state" not in filters:
        return None
    found = [_c.state == filters["state"], *webhook]
    some = sa.select(sa.literal(1)).where(*found).limit(_STRETCH).subquery()
    return found if tx.count(some) < _STRETCH else None


def _read(  # with only one lower bound, since SQLite would use only the first of two
    tx: Transaction, where: list[Any], number: sa.ColumnElement[Any], top: int, bottom: int, limit: int
) -> list[Delivery]:
    wanted = sa.select(*COLUMNS).where(*where, number < top, number >= bottom).order_by(number.desc()).limit(limit)
    return [Delivery(*row) for row in tx.connection.execute(wanted)]


def _page(found: list[Delivery], limit: int) -> SearchResult[Delivery, int]:
    return SearchResult(found[:limit], found[limit - 1].id if len(found) > limit else None)


def _end(tx: Transaction, stretch: Sequence[sa.ColumnElement[bool]]) -> int | None:
    """Return the id at which a stretch ends; None if there are no deliveries beyond it."""
    return tx.connection.execute(sa.select(_c.id).where(*stretch).order_by(_c.id.desc()).limit(1).offset(_STRETCH)).scalar()


def _find_id_range(tx: Transaction, filters: Mapping[str, Any], before: int | None) -> tuple[int, int]:
    """Return the range of ids for the requested time: ids below the first number, down to and including the second.

    A delivery may be written some time after its creation time, so ids and creation times can be out of order by `_LAG`.
    """
    first, last = sa.select(sa.func.min(_c.id)), sa.select(sa.func.max(_c.id))
    if since := filters.get("since"):
        at = tx.connection.execute(sa.select(sa.func.min(_c.created_at)).where(_c.created_at >= since)).scalar()
        if at is None:
            return 0, 0
        first = first.where(_c.created_at >= since, _c.created_at <= shift_timestamp(at, _LAG))
    if until := filters.get("until"):
        at = tx.connection.execute(sa.select(sa.func.max(_c.created_at)).where(_c.created_at < until)).scalar()
        if at is None:
            return 0, 0
        last = last.where(_c.created_at < until, _c.created_at >= shift_timestamp(at, -_LAG))
    bottom, top = (tx.connection.execute(statement).scalar() for statement in (first, last))
    if bottom is None or top is None:
        return 0, 0
    return (top + 1 if before is None else min(top + 1, before)), bottom


def list_attempts(tx: Transaction, delivery_ids: Iterable[int], *, answers: bool = True) -> dict[int, list[Attempt]]:
    """Read the attempts of deliveries in order: delivery id → attempts. Without `answers`, `answer` is always None."""
    columns = [attempts.c[name] if answers or name != "answer" else sa.null() for name in Attempt._fields]
    wanted = sa.select(attempts.c.delivery_id, *columns).where(attempts.c.delivery_id.in_(list(delivery_ids)))
    found: dict[int, list[Attempt]] = {}
    for row in tx.connection.execute(wanted.order_by(attempts.c.id)):
        found.setdefault(row[0], []).append(Attempt(*row[1:]))
    return found


# --- purging ------------------------------------------------------------------------------------------------------


def purge(tx: Transaction, before: str, most: int = 2000) -> int:
    """Delete finished deliveries from before a timestamp and all of deleted webhooks, at most `most`, and return their number."""
    stale = sa.select(_c.id).where(_c.state != "waiting", _c.created_at < before).limit(most)
    ids = [row[0] for row in tx.connection.execute(stale)]
    held = {*list_webhooks(tx)}
    for webhook in _list_webhooks_with_deliveries(tx):
        if len(ids) >= most:
            break
        if webhook not in held:
            ids += tx.connection.execute(sa.select(_c.id).where(_c.webhook_id == webhook).limit(most)).scalars()
    return _delete(tx, ids[:most])


def purge_webhook(tx: Transaction, webhook: int, keep: int, most: int = 2000) -> int:
    """Delete finished deliveries of a webhook that are not among its latest `keep`, at most `most`, and return their number."""
    mine = sa.select(_c.id).where(_c.webhook_id == webhook)
    last = tx.connection.execute(mine.order_by(_c.id.desc()).offset(keep).limit(1)).scalar()
    old = mine.where(_c.id <= (last or 0), _c.state != "waiting").limit(most)
    return _delete(tx, [*tx.connection.execute(old).scalars()])


def _delete(tx: Transaction, ids: Sequence[int]) -> int:
    if ids:
        tx.connection.execute(sa.delete(attempts).where(attempts.c.delivery_id.in_(ids)))
        tx.connection.execute(sa.delete(deliveries).where(_c.id.in_(ids)))
    return len(ids)


def list_webhooks(tx: Transaction) -> list[int]:
    """Return the ids of all webhooks."""
    return [*tx.connection.execute(sa.select(webhooks.c.id).order_by(webhooks.c.id)).scalars()]


def _list_webhooks_with_deliveries(tx: Transaction) -> Iterator[int]:
    """Yield the ids of the webhooks with deliveries, deleted ones included. One query for all ids would read every row."""
    webhook = 0
    while webhook := tx.connection.execute(sa.select(sa.func.min(_c.webhook_id)).where(_c.webhook_id > webhook)).scalar() or 0:
        yield webhook
