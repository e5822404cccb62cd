"""The rows of deliveries: what is to be sent again, what was sent, and the log of the attempts."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, get_args

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import IdIn, Statement, Transaction, WithoutIndex
from trellis.store.events import Event
from trellis.store.tables import attempts, deliveries, events, webhooks

_c = deliveries.c
State = Literal["waiting", "delivered", "failed"]
_STATES: Final = get_args(State)
PATIENCE: Final = 0.03  # seconds
_STRETCH: Final = 5_000  # deliveries
_LAG: Final = 600  # seconds by which deliveries that are written one after the other may have been made in another order


@dataclass(slots=True)
class Delivery:
    """One message to one endpoint. `id` is 0 before it is written; `seq` is None for a test."""

    id: int
    webhook_id: int
    seq: int | None
    message: str
    type: str
    state: State
    step: int
    attempts: int
    due_at: str | None
    early: int
    extras: int
    created_at: str
    attempted_at: str | None


class Attempt(NamedTuple):
    """One attempt as it is logged. `duration` is in milliseconds; `status` is None where no answer came."""

    at: str
    url: str
    duration: int
    status: int | None
    error: str | None
    answer: str | None


class Search(NamedTuple):
    """What a search has found. `next` is the id to go on before, if there may be more; `patient` is false if it ended early."""

    found: list[Delivery]
    next: int | None
    patient: bool = True


_NAMES = tuple(f.name for f in fields(Delivery))
_COLUMNS = tuple(_c[name] for name in _NAMES)
_DUE = sa.and_(
    _c.state == "waiting",
    # An attempt that lies ahead of the clock was made before the clock was set back: what it put off is due.
    sa.or_(_c.early == 1, _c.due_at <= bindparam("now"), _c.attempted_at > bindparam("ahead")),
)
_DUE_OF = Statement(
    sa.select(*_COLUMNS)
    .where(_DUE, _c.webhook_id == bindparam("webhook"))
    .order_by(sa.func.coalesce(_c.seq, 0), _c.id)
    .limit(bindparam("most", type_=sa.Integer))
)
_WITH_DUE = Statement(sa.select(_c.webhook_id).where(_DUE).distinct())


def due(tx: Transaction, webhook: int, now: str, ahead: str, most: int) -> list[Delivery]:
    """Read what is to be sent to an endpoint now, tests first and then the oldest event first."""
    return [Delivery(*row) for row in tx.fetch(_DUE_OF, webhook=webhook, now=now, ahead=ahead, most=most)]


_OLDEST = Statement(
    sa.select(*_COLUMNS)
    .where(
        _c.state == "waiting",
        _c.webhook_id == bindparam("webhook"),
        _c.seq < bindparam("before"),
        _c.attempted_at >= bindparam("since"),
        _c.extras < bindparam("most"),
    )
    .order_by(_c.seq)
    .limit(1)
)


def oldest(tx: Transaction, webhook: int, before: int, since: str, most: int) -> Delivery | None:
    """Read the delivery of the oldest event before one that has failed since a moment, before its time less often than `most`."""
    rows = tx.fetch(_OLDEST, webhook=webhook, before=before, since=since, most=most)
    return Delivery(*rows[0]) if rows else None


def with_due(tx: Transaction, now: str, ahead: str) -> set[int]:
    """Give the ids of the webhooks for which something is due."""
    return {row[0] for row in tx.fetch(_WITH_DUE, now=now, ahead=ahead)}


_e = events.c
_EVENT_NAMES = tuple(Event.__slots__)
_BEHIND = Statement(
    sa.select(*(_e[name] for name in _EVENT_NAMES))
    .where(_e.seq > bindparam("cursor"))
    .order_by(_e.seq)
    .limit(bindparam("most", type_=sa.Integer))
)
_EVENTS = Statement(sa.select(*(_e[name] for name in _EVENT_NAMES)).where(IdIn(_e.seq, "seqs")))
_JSON = frozenset({"actor", "before", "after", "changed", "touched"})


def events_behind(tx: Transaction, cursor: int, most: int) -> list[Event]:
    """Read the events behind a number, in their order."""
    return [_event(row, tx) for row in tx.fetch(_BEHIND, cursor=cursor, most=most)]


def events_of(tx: Transaction, seqs: Iterable[int]) -> dict[int, Event]:
    """Read events by their numbers; those that are no longer kept are left out."""
    listed = list(seqs)
    return {row[0]: _event(row, tx) for row in tx.fetch(_EVENTS, seqs=tx.id_list(listed))} if listed else {}


def _event(row: Sequence[Any], tx: Transaction) -> Event:
    return Event(*(tx.decode(value) if name in _JSON else value for name, value in zip(_EVENT_NAMES, row, strict=True)))


# --- writing ------------------------------------------------------------------------------------------------------

_INSERT = Statement(sa.insert(deliveries).values({name: bindparam(name) for name in _NAMES if name != "id"}).returning(_c.id))
_MOVE = Statement(
    sa.update(deliveries)
    .where(_c.id == bindparam("delivery"))
    .values({name: bindparam("new_" + name) for name in ("state", "step", "attempts", "due_at", "early", "extras", "attempted_at")})
)
_LOG = Statement(sa.insert(attempts).values({name: bindparam(name) for name in ("delivery_id", *Attempt._fields)}))
_BRING_FORWARD = Statement(
    sa.update(deliveries)
    .where(
        _c.webhook_id == bindparam("webhook"),
        _c.state == "waiting",
        _c.extras < bindparam("most"),
        _c.attempted_at >= bindparam("since"),
    )
    .values(early=1)
)


def insert(tx: Transaction, delivery: Delivery) -> int:
    """Write a new delivery; give its id."""
    return int(tx.fetch(_INSERT, **{name: getattr(delivery, name) for name in _NAMES if name != "id"})[0][0])


def record(tx: Transaction, delivery: Delivery, attempt: Attempt) -> None:
    """Write what came of an attempt: the delivery, new or as it is now, and the attempt."""
    number = delivery.id
    if not number:
        number = insert(tx, delivery)
    else:
        tx.execute(
            _MOVE,
            delivery=number,
            new_state=delivery.state,
            new_step=delivery.step,
            new_attempts=delivery.attempts,
            new_due_at=delivery.due_at,
            new_early=delivery.early,
            new_extras=delivery.extras,
            new_attempted_at=delivery.attempted_at,
        )
    tx.execute(_LOG, delivery_id=number, **attempt._asdict())


def bring_forward(tx: Transaction, webhook: int, since: str, most: int) -> None:
    """Let what failed since a moment go now, before its time, unless it has failed so as often as `most`."""
    tx.execute(_BRING_FORWARD, webhook=webhook, since=since, most=most)


def redeliver(tx: Transaction, found: sa.ColumnElement[bool], now: str) -> int:
    """Let deliveries go again now, with the whole schedule before them; give their number."""
    anew = {"state": "waiting", "step": 0, "due_at": now, "early": 0}
    return int(tx.connection.execute(sa.update(deliveries).where(found).values(anew)).rowcount)


def the_one(webhook: int, delivery: int) -> sa.ColumnElement[bool]:
    """Find a delivery of a webhook."""
    return sa.and_(_c.webhook_id == webhook, _c.id == delivery)


def failed_since(webhook: int, since: str) -> sa.ColumnElement[bool]:
    """Find the deliveries of a webhook that are not delivered, and were last tried at or after a moment."""
    return sa.and_(_c.webhook_id == webhook, _c.state != "delivered", _c.attempted_at >= since)


# --- reading for people -------------------------------------------------------------------------------------------


def find(tx: Transaction, delivery: int) -> Delivery | None:
    """Read one delivery."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id == delivery)).first()
    return Delivery(*row) if row else None


def search(
    tx: Transaction, filters: Mapping[str, Any], limit: int, before: int | None = None, patience: float = PATIENCE
) -> Search:
    """Search the deliveries, the newest first.

    `filters` may hold webhook_id, state, type, seq, `since` and `until` (moments of being made; the latter not included).
    """
    leading = [_c.webhook_id == filters["webhook_id"]] if "webhook_id" in filters else []
    others = [WithoutIndex(_c[name]) == filters[name] for name in ("state", "type") if name in filters]
    others += [_c.created_at >= filters["since"]] if "since" in filters else []
    others += [_c.created_at < filters["until"]] if "until" in filters else []
    top, bottom = _reach(tx, filters, before)
    if (straight := _straight(tx, filters, leading)) is not None:
        return _page(_read(tx, [*straight, *others], WithoutIndex(_c.id), top, bottom, limit + 1), limit)
    deadline = time.perf_counter() + patience
    found: list[Delivery] = []
    while top > bottom:
        end = _end(tx, [*leading, _c.id < top, _c.id >= bottom]) if others else None
        found += _read(tx, [*leading, *others], _c.id, top, end or bottom, limit + 1 - len(found))
        if end is None or len(found) > limit:
            break
        top = end
        if time.perf_counter() > deadline and top > bottom:
            return Search(found, top, patient=False)
    return _page(found, limit)


def _straight(tx: Transaction, filters: Mapping[str, Any], webhook: list[sa.ColumnElement[bool]]) -> list[Any] | None:
    """Give what leads to few deliveries by the index on state, webhook and event, if something does."""
    if "seq" in filters:  # by way of each state and each webhook
        return [_c.state.in_(_STATES), *(webhook or [_c.webhook_id.in_(sa.select(webhooks.c.id))]), _c.seq == filters["seq"]]
    if "state" not in filters:
        return None
    found = [_c.state == filters["state"], *webhook]
    some = sa.select(sa.literal(1)).where(*found).limit(_STRETCH).subquery()
    return found if tx.connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one() < _STRETCH else None


def _read(  # of two bounds below, SQLite would follow the first: there is one
    tx: Transaction, where: list[Any], number: sa.ColumnElement[Any], top: int, bottom: int, limit: int
) -> list[Delivery]:
    wanted = sa.select(*_COLUMNS).where(*where, number < top, number >= bottom).order_by(number.desc()).limit(limit)
    return [Delivery(*row) for row in tx.connection.execute(wanted)]


def _page(found: list[Delivery], limit: int) -> Search:
    return Search(found[:limit], found[limit - 1].id if len(found) > limit else None)


def _end(tx: Transaction, stretch: Sequence[sa.ColumnElement[bool]]) -> int | None:
    """Give the id at which a stretch ends; None if the deliveries do before that."""
    return tx.connection.execute(sa.select(_c.id).where(*stretch).order_by(_c.id.desc()).limit(1).offset(_STRETCH)).scalar()


def _reach(tx: Transaction, filters: Mapping[str, Any], before: int | None) -> tuple[int, int]:
    """Give the ids between which the deliveries of the asked time lie: up to but without the first, down to the second.

    A delivery is written some time after it was made, so that ids and times are out of order by as much.
    """
    first, last = sa.select(sa.func.min(_c.id)), sa.select(sa.func.max(_c.id))
    if since := filters.get("since"):
        at = tx.connection.execute(sa.select(sa.func.min(_c.created_at)).where(_c.created_at >= since)).scalar()
        first = first.where(_c.created_at >= since, _c.created_at <= _later(at or since, _LAG))
    if until := filters.get("until"):
        at = tx.connection.execute(sa.select(sa.func.max(_c.created_at)).where(_c.created_at < until)).scalar()
        last = last.where(_c.created_at < until, _c.created_at >= _later(at or until, -_LAG))
    bottom, top = (tx.connection.execute(statement).scalar() for statement in (first, last))
    if bottom is None or top is None:
        return 0, 0
    return (top + 1 if before is None else min(top + 1, before)), bottom


def _later(at: str, seconds: int) -> str:
    moment = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def attempts_of(tx: Transaction, delivery_ids: Iterable[int], *, answers: bool = True) -> dict[int, list[Attempt]]:
    """Read the attempts of deliveries, in their order; `answer` is None throughout if it is not wanted."""
    columns = [attempts.c[name] if answers or name != "answer" else sa.null() for name in Attempt._fields]
    wanted = sa.select(attempts.c.delivery_id, *columns).where(attempts.c.delivery_id.in_(list(delivery_ids)))
    found: dict[int, list[Attempt]] = {}
    for row in tx.connection.execute(wanted.order_by(attempts.c.id)):
        found.setdefault(row[0], []).append(Attempt(*row[1:]))
    return found


# --- purging ------------------------------------------------------------------------------------------------------


def purge(tx: Transaction, before: str, keep: int, most: int = 2000) -> int:
    """Delete deliveries, at most `most` at a time, and give their number.

    They are the finished ones that are older than a moment or not among the latest `keep` of their webhook, and all those of
    webhooks that are gone.
    """
    stale = sa.select(_c.id).where(_c.state != "waiting", _c.created_at < before).limit(most)
    ids = [row[0] for row in tx.connection.execute(stale)]
    held = {row[0] for row in tx.connection.execute(sa.select(webhooks.c.id))}
    for webhook in [row[0] for row in tx.connection.execute(sa.select(_c.webhook_id).distinct())]:
        mine = sa.select(_c.id).where(_c.webhook_id == webhook)
        if webhook in held:
            last = tx.connection.execute(mine.order_by(_c.id.desc()).offset(keep).limit(1)).scalar()
            mine = mine.where(_c.id <= (last or 0), _c.state != "waiting")
        ids += [row[0] for row in tx.connection.execute(mine.limit(most))]
    ids = list(dict.fromkeys(ids))[:most]
    if ids:
        tx.connection.execute(sa.delete(attempts).where(attempts.c.delivery_id.in_(ids)))
        tx.connection.execute(sa.delete(deliveries).where(_c.id.in_(ids)))
    return len(ids)
