"""The outbox, with one row for each event and subscribed endpoint. After delivery, the row remains as an entry of the log."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Final, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import attempts, deliveries, webhooks

_c = deliveries.c
State = Literal["waiting", "delivered", "failed"]


@dataclass(slots=True)
class Delivery:
    """One message to one endpoint.

    `id` is 0 before it is written; `seq` is the number of the event, None for a test. `scheduled_attempts` were made when
    they were due, and `early_attempts` before that. `attempted_at` is None until the first attempt.
    """

    id: int
    webhook_id: int
    seq: int | None
    message: str
    type: str
    state: State
    due_at: str | None
    created_at: str
    scheduled_attempts: int = 0
    early_attempts: int = 0
    attempted_at: str | None = None


class Attempt(NamedTuple):
    """One attempt as logged. `duration` is in milliseconds; `status` is None if there was no response."""

    at: str
    url: str
    duration: int
    status: int | None
    error: str | None
    answer: str | None


_NAMES: Final = tuple(field.name for field in fields(Delivery))
COLUMNS: Final = tuple(_c[name] for name in _NAMES)

_INSERT = Statement(sa.insert(deliveries).values({name: bindparam(name) for name in _NAMES if name != "id"}).returning(_c.id))


def insert(tx: Transaction, delivery: Delivery) -> int:
    """Insert a row; return its id."""
    return int(tx.fetch(_INSERT, **{name: getattr(delivery, name) for name in _NAMES if name != "id"})[0][0])


def find_creation_time(tx: Transaction, now: str) -> str:
    """Return the creation time for a new row: never before that of an earlier row, since a search by time relies on the ids."""
    newest: str | None = tx.connection.execute(sa.select(_c.created_at).order_by(_c.id.desc()).limit(1)).scalar()
    return now if newest is None else max(now, newest)


def withdraw_untried(tx: Transaction, webhook: int) -> int | None:
    """Delete the waiting rows of an endpoint that have not been tried, except tests; return the number of their first event.

    None if there were none.
    """
    untried = sa.and_(_c.webhook_id == webhook, _c.state == "waiting", _c.attempted_at.is_(None), _c.seq.is_not(None))
    first: int | None = tx.connection.execute(sa.select(sa.func.min(_c.seq)).where(untried)).scalar()
    tx.connection.execute(sa.delete(deliveries).where(untried))
    return first


def give_up_unwanted(tx: Transaction, webhook: int, is_wanted: Callable[[str], bool], attempt: Attempt) -> None:
    """Give up the messages of an endpoint that wait for another attempt but are of unwanted types; log `attempt` for each."""
    failed = sa.and_(_c.webhook_id == webhook, _c.state == "waiting", _c.attempted_at.is_not(None), _c.seq.is_not(None))
    types = tx.connection.execute(sa.select(_c.type).where(failed).distinct()).scalars()
    unwanted = sa.and_(failed, _c.type.in_([one for one in types if not is_wanted(one)]))
    columns = ["delivery_id", *Attempt._fields]
    logged = sa.select(_c.id, *(sa.literal(value, attempts.c[name].type) for name, value in attempt._asdict().items()))
    tx.connection.execute(sa.insert(attempts).from_select(columns, logged.where(unwanted)))
    tx.connection.execute(sa.update(deliveries).where(unwanted).values(state="failed", due_at=None, attempted_at=attempt.at))


# --- due messages -------------------------------------------------------------------------------------------------

_DUE = sa.and_(
    _c.state == "waiting",
    # An attempt in the future was made before the clock was set back, so the retry that it postponed is due.
    sa.or_(_c.attempted_at.is_(None), _c.due_at <= bindparam("now"), _c.attempted_at > bindparam("ahead")),
)
_DUE_OF = Statement(
    sa.select(*COLUMNS)
    .where(_DUE, _c.webhook_id == bindparam("webhook"))
    .order_by(sa.func.coalesce(_c.seq, 0), _c.id)
    .limit(bindparam("most", type_=sa.Integer))
)
_WITH_DUE = Statement(
    sa.select(webhooks.c.id).where(
        webhooks.c.enabled == sa.true(), sa.exists().where(_DUE, _c.webhook_id == webhooks.c.id).correlate(webhooks)
    )
)
_FIRST_FAILED = Statement(
    sa.select(*COLUMNS)
    .where(
        _c.state == "waiting",
        _c.webhook_id == bindparam("webhook"),
        _c.seq < bindparam("before"),
        _c.attempted_at >= bindparam("since"),
        _c.early_attempts < bindparam("most"),
    )
    .order_by(_c.seq)
    .limit(1)
)


def list_due(tx: Transaction, webhook: int, now: str, ahead: str, most: int) -> list[Delivery]:
    """Read the due messages of an endpoint: tests first, then oldest event first.

    The time of an attempt after `ahead` is wrong, so its message is due.
    """
    return [Delivery(*row) for row in tx.fetch(_DUE_OF, webhook=webhook, now=now, ahead=ahead, most=most)]


def find_webhooks_with_due(tx: Transaction, now: str, ahead: str) -> set[int]:
    """Return the ids of the enabled webhooks with due messages."""
    return {row[0] for row in tx.fetch(_WITH_DUE, now=now, ahead=ahead)}


def find_first_failed(tx: Transaction, webhook: int, before: int, since: str, most_early: int) -> Delivery | None:
    """Read the delivery of the oldest event before `before` that was tried at or after `since` and is still waiting.

    It must have had fewer than `most_early` early attempts.
    """
    rows = tx.fetch(_FIRST_FAILED, webhook=webhook, before=before, since=since, most=most_early)
    return Delivery(*rows[0]) if rows else None


# --- outcomes of attempts -----------------------------------------------------------------------------------------

_UPDATED: Final = ("state", "scheduled_attempts", "due_at", "early_attempts", "attempted_at")
_UPDATE = Statement(
    sa.update(deliveries).where(_c.id == bindparam("delivery")).values({name: bindparam("new_" + name) for name in _UPDATED})
)
# Also by the message, since SQLite may have given the id of a withdrawn row to another row.
_FIND_PLAN = Statement(
    sa.select(_c.state, _c.scheduled_attempts, _c.due_at).where(
        _c.id == bindparam("delivery"), _c.webhook_id == bindparam("webhook"), _c.message == bindparam("message")
    )
)
_LOG = Statement(sa.insert(attempts).values({name: bindparam(name) for name in ("delivery_id", *Attempt._fields)}))
_BRING_FORWARD = Statement(
    sa.update(deliveries)
    .where(
        _c.webhook_id == bindparam("webhook"),
        _c.state == "waiting",
        _c.early_attempts < bindparam("most"),
        _c.attempted_at >= bindparam("since"),
    )
    .values(
        due_at=bindparam("now"),
        scheduled_attempts=sa.case((_c.scheduled_attempts > 0, _c.scheduled_attempts - 1), else_=0),
        early_attempts=_c.early_attempts + 1,
    )
)


def record_attempt(tx: Transaction, delivery: Delivery, attempt: Attempt, before: Delivery) -> None:
    """Record the outcome of an attempt, unless the row has been withdrawn meanwhile. `before` is the delivery before the attempt.

    If the attempt failed, and the delivery was restarted or given up meanwhile, the delivery stays restarted or given up.
    """
    rows = tx.fetch(_FIND_PLAN, delivery=delivery.id, webhook=delivery.webhook_id, message=delivery.message)
    if not rows:
        return
    if delivery.state != "delivered" and tuple(rows[0]) != (before.state, before.scheduled_attempts, before.due_at):
        state, made, due_at = rows[0]
        delivery = replace(
            before, state=state, scheduled_attempts=made, due_at=due_at, early_attempts=0, attempted_at=delivery.attempted_at
        )
    tx.execute(_UPDATE, delivery=delivery.id, **{"new_" + name: getattr(delivery, name) for name in _UPDATED})
    tx.execute(_LOG, delivery_id=delivery.id, **attempt._asdict())


def bring_forward(tx: Transaction, webhook: int, since: str, now: str, most_early: int) -> None:
    """Make waiting messages that were tried at or after `since` due now, for an early attempt, which is not a scheduled one.

    Messages that have had `most_early` early attempts are left as they are.
    """
    tx.execute(_BRING_FORWARD, webhook=webhook, since=since, now=now, most=most_early)


def restart(tx: Transaction, webhook: int, now: str, *, delivery: int | None = None, failed_since: str | None = None) -> int:
    """Make deliveries of a webhook due now, with the whole schedule ahead of them; return their number.

    With `delivery`, this is one delivery, in any state. With `failed_since`, these are all undelivered ones last tried at or after
    that timestamp. Otherwise these are all that are waiting.
    """
    if delivery is not None:
        chosen = _c.id == delivery
    elif failed_since is not None:
        chosen = sa.and_(_c.state != "delivered", _c.attempted_at >= failed_since)
    else:
        chosen = _c.state == "waiting"
    values = {"state": "waiting", "scheduled_attempts": 0, "due_at": now, "early_attempts": 0}
    return int(tx.connection.execute(sa.update(deliveries).where(_c.webhook_id == webhook, chosen).values(values)).rowcount)
