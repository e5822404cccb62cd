"""The rows of webhooks: settings, the last event in the outbox, the state of the endpoint, and the worker that has leased it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import IdIn, Statement, Transaction
from trellis.store.tables import webhooks

_c = webhooks.c


@dataclass(slots=True)
class Webhook:
    """An endpoint. Timestamps are ISO 8601 text, UTC; `secret` is as core/webhooks/secret.py stores it.

    `maker` is the actor who created it, or last switched it on, changed its address or added events. `cursor` is the last event
    processed for its outbox, `owner` the worker that has leased it, and `heartbeat` a number that increases while that worker
    lives. `failures` counts failed attempts in a row. `failing_since` is the time of the first of them, or of the first after a
    long time without attempts; `tried_since` is the time of the first of all, moved forward by such times without attempts.
    """

    id: int
    url: str
    events: Sequence[str]
    description: str
    enabled: bool
    secret: str
    old_secret: str | None
    old_until: str | None
    disabled_at: str | None
    disabled_because: str | None
    created_at: str
    updated_at: str
    cursor: int
    owner: str | None = None
    heartbeat: int = 0
    failures: int = 0
    failing_since: str | None = None
    attempted_at: str | None = None
    paused_until: str | None = None
    maker: Mapping[str, Any] | None = None
    tried_since: str | None = None

    def __repr__(self) -> str:
        return f"Webhook({self.id}, {self.url!r})"


_COLUMNS = tuple(_c[f.name] for f in fields(Webhook))
# Written by the worker that has leased the endpoint; operations only clear failures and end a pause.
_PROGRESS: Final = ("failures", "failing_since", "attempted_at", "paused_until", "tried_since")
_BOOKKEEPING: Final = frozenset({"id", "cursor", "owner", "heartbeat", *_PROGRESS})
_SETTINGS: Final = tuple(f.name for f in fields(Webhook) if f.name not in _BOOKKEEPING)
MAKER: Final = ("type", "id", "name")
_ENABLED = Statement(sa.select(*_COLUMNS).where(_c.enabled == sa.true()).order_by(_c.id))
_MOVE = Statement(sa.update(webhooks).where(IdIn(_c.id, "ids")).values(cursor=bindparam("cursor")))
_FIND = Statement(sa.select(*_COLUMNS).where(_c.id == bindparam("id")))


def find(tx: Transaction, webhook: int) -> Webhook | None:
    """Read one webhook."""
    rows = tx.fetch(_FIND, id=webhook)
    return _webhook(rows[0], tx) if rows else None


def list_enabled(tx: Transaction) -> list[Webhook]:
    """Read all enabled webhooks."""
    return [_webhook(row, tx) for row in tx.fetch(_ENABLED)]


def _webhook(row: Sequence[Any], tx: Transaction) -> Webhook:
    webhook = Webhook(*row)
    webhook.events, webhook.enabled = tx.decode(webhook.events), bool(webhook.enabled)
    if webhook.maker is not None:
        maker = tx.decode(webhook.maker)
        webhook.maker = {name: maker[name] for name in MAKER}  # PostgreSQL returns them in another order
    return webhook


def list_page(tx: Transaction, limit: int, offset: int) -> tuple[int, list[Webhook]]:
    """Read a page of webhooks; return the number of all webhooks and the page."""
    rows = tx.connection.execute(sa.select(*_COLUMNS).order_by(_c.id).limit(limit).offset(offset))
    return count(tx), [_webhook(row, tx) for row in rows]


def list_all(tx: Transaction) -> list[Webhook]:
    """Read all webhooks. There are 100 at most."""
    return _read(tx)


def _read(tx: Transaction, *where: sa.ColumnElement[bool]) -> list[Webhook]:
    return [_webhook(row, tx) for row in tx.connection.execute(sa.select(*_COLUMNS).where(*where).order_by(_c.id))]


def switch_off_made_by(tx: Transaction, actor_type: str, actor_id: int, at: str, because: str) -> list[int]:
    """Switch off the enabled webhooks whose `maker` is an actor; return their ids. `at` is the time for the records of a write."""
    maker = actor_type, actor_id
    made = [one for one in list_all(tx) if one.enabled and one.maker and (one.maker["type"], one.maker["id"]) == maker]
    for webhook in made:
        update(tx, replace(webhook, enabled=False, disabled_at=at, disabled_because=because, updated_at=at))
    return [webhook.id for webhook in made]


def count(tx: Transaction) -> int:
    """Count the webhooks."""
    return tx.count(webhooks)


def list_failing(tx: Transaction) -> list[Webhook]:
    """Read the enabled webhooks whose last attempts have failed, and the webhooks that the service has switched off."""
    now = sa.and_(_c.enabled == sa.true(), _c.failing_since.is_not(None))
    given_up = sa.and_(_c.enabled == sa.false(), _c.disabled_because.is_not(None))
    return _read(tx, sa.or_(now, given_up))


def insert(tx: Transaction, webhook: Webhook) -> None:
    """Insert a webhook."""
    tx.connection.execute(sa.insert(webhooks).values(**asdict(webhook)))


def update(tx: Transaction, webhook: Webhook) -> None:
    """Write the settings of a webhook, but not the state of delivery."""
    values = {name: value for name, value in asdict(webhook).items() if name not in _BOOKKEEPING}
    tx.connection.execute(sa.update(webhooks).where(_c.id == webhook.id).values(**values))


def has_same_settings(one: Webhook, other: Webhook) -> bool:
    """Return whether two readings of a webhook have the same settings. The state of delivery may differ."""
    return all(getattr(one, name) == getattr(other, name) for name in _SETTINGS)


def reset_failures(tx: Transaction, webhook: int) -> None:
    """Clear the failures of a webhook, and end its pause."""
    values = {"failures": 0, "failing_since": None, "paused_until": None, "tried_since": None}
    tx.connection.execute(sa.update(webhooks).where(_c.id == webhook).values(**values))


def end_pause(tx: Transaction, webhook: int, now: str) -> None:
    """End the pause of a webhook now. `paused_until` is kept, so that messages that failed during the outage are sent first."""
    paused = sa.and_(_c.id == webhook, _c.paused_until > now)
    tx.connection.execute(sa.update(webhooks).where(paused).values(paused_until=now))


def move_cursors(tx: Transaction, ids: Sequence[int], cursor: int) -> None:
    """Record the last event that has been processed for the outbox of some webhooks."""
    tx.execute(_MOVE, ids=tx.id_list(ids), cursor=cursor)


def delete(tx: Transaction, webhook: int) -> None:
    """Delete a webhook. Its deliveries are purged later, a batch at a time."""
    tx.connection.execute(sa.delete(webhooks).where(_c.id == webhook))


# --- leases of endpoints ------------------------------------------------------------------------------------------

_CLAIM_FREE = Statement(
    sa.update(webhooks)
    .where(_c.id == bindparam("webhook"), _c.enabled == sa.true(), _c.owner.is_(None))
    .values(owner=bindparam("me"), heartbeat=_c.heartbeat + 1)
)
_CLAIM_LEFT = Statement(
    sa.update(webhooks)
    .where(
        _c.id == bindparam("webhook"), _c.enabled == sa.true(), _c.owner == bindparam("other"), _c.heartbeat == bindparam("seen")
    )
    .values(owner=bindparam("me"), heartbeat=_c.heartbeat + 1)
)
_RENEW = Statement(sa.update(webhooks).where(_c.owner == bindparam("me")).values(heartbeat=_c.heartbeat + 1))
_RELEASE = Statement(sa.update(webhooks).where(_c.id == bindparam("webhook"), _c.owner == bindparam("me")).values(owner=sa.null()))


def claim(tx: Transaction, webhook: int, me: str, left: tuple[str, int] | None) -> bool:
    """Lease an endpoint that has no owner, or a dead one: `left` is the dead owner and its last heartbeat. Return success."""
    if left is None:
        return tx.execute(_CLAIM_FREE, webhook=webhook, me=me) == 1
    return tx.execute(_CLAIM_LEFT, webhook=webhook, me=me, other=left[0], seen=left[1]) == 1


def is_held(tx: Transaction, webhook: int, me: str) -> bool:
    """Return whether this worker has leased an endpoint."""
    found = find(tx, webhook)
    return found is not None and found.owner == me


def renew(tx: Transaction, me: str) -> int:
    """Increase the heartbeat of this worker; return the number of endpoints that it has leased."""
    return tx.execute(_RENEW, me=me)


def release(tx: Transaction, held: Iterable[int], me: str) -> None:
    """Release endpoints, except those that another worker has leased meanwhile."""
    for webhook in held:
        tx.execute(_RELEASE, webhook=webhook, me=me)


_SAVE = Statement(
    sa.update(webhooks)
    .where(_c.id == bindparam("webhook"), _c.owner == bindparam("me"))
    .values({name: bindparam(name) for name in _PROGRESS})
)


def save_progress(tx: Transaction, webhook: Webhook, me: str) -> bool:
    """Write the state of an endpoint. Returns False and writes nothing if another worker has leased it meanwhile."""
    return bool(tx.execute(_SAVE, webhook=webhook.id, me=me, **{name: getattr(webhook, name) for name in _PROGRESS}))
