"""The rows of webhooks: their settings, how far their outbox is filled, how their endpoint does, and which worker holds it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import IdIn, Statement, Transaction
from trellis.store.tables import webhooks

_c = webhooks.c


@dataclass(slots=True)
class Webhook:
    """An endpoint. Timestamps are ISO 8601 text, UTC; `secret` is as core/webhooks/secret.py stores it.

    `cursor` is the last event that was looked at for its outbox, `owner` the worker that holds it, and `heartbeat` a number
    that grows while that worker lives. `failures` counts failed attempts in a row, and `failing_since` is the first of them.
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

    def __repr__(self) -> str:
        return f"Webhook({self.id}, {self.url!r})"


_COLUMNS = tuple(_c[f.name] for f in fields(Webhook))
# Written by the worker that holds the endpoint, never by an operation.
_BOOKKEEPING: Final = frozenset({"id", "cursor", "owner", "heartbeat", "failures", "failing_since", "attempted_at", "paused_until"})
_ENABLED = Statement(sa.select(*_COLUMNS).where(_c.enabled == sa.true()).order_by(_c.id))
_MOVE = Statement(sa.update(webhooks).where(IdIn(_c.id, "ids")).values(cursor=bindparam("cursor")))
_FIND = Statement(sa.select(*_COLUMNS).where(_c.id == bindparam("id")))


def find(tx: Transaction, webhook: int) -> Webhook | None:
    """Read one webhook."""
    rows = tx.fetch(_FIND, id=webhook)
    return _webhook(rows[0], tx) if rows else None


def list_enabled(tx: Transaction) -> list[Webhook]:
    """Read all webhooks that are switched on."""
    return [_webhook(row, tx) for row in tx.fetch(_ENABLED)]


def _webhook(row: Sequence[Any], tx: Transaction) -> Webhook:
    webhook = Webhook(*row)
    webhook.events, webhook.enabled = tx.decode(webhook.events), bool(webhook.enabled)
    return webhook


def list_page(tx: Transaction, limit: int, offset: int) -> tuple[int, list[Webhook]]:
    """Read a page of webhooks, and how many there are."""
    rows = tx.connection.execute(sa.select(*_COLUMNS).order_by(_c.id).limit(limit).offset(offset))
    return count(tx), [_webhook(row, tx) for row in rows]


def count(tx: Transaction) -> int:
    """Count the webhooks."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(webhooks)).scalar_one())


def list_failing(tx: Transaction) -> list[Webhook]:
    """Read the webhooks whose last attempts have failed, and those that the service has switched off."""
    now = sa.and_(_c.enabled == sa.true(), _c.failing_since.is_not(None))
    given_up = sa.and_(_c.enabled == sa.false(), _c.disabled_because.is_not(None))
    rows = tx.connection.execute(sa.select(*_COLUMNS).where(sa.or_(now, given_up)).order_by(_c.id))
    return [_webhook(row, tx) for row in rows]


def insert(tx: Transaction, webhook: Webhook) -> None:
    """Write a new webhook."""
    tx.connection.execute(sa.insert(webhooks).values(**asdict(webhook)))


def update(tx: Transaction, webhook: Webhook) -> None:
    """Write the settings; what delivery keeps stays as it is."""
    values = {name: value for name, value in asdict(webhook).items() if name not in _BOOKKEEPING}
    tx.connection.execute(sa.update(webhooks).where(_c.id == webhook.id).values(**values))


def reset_failures(tx: Transaction, webhook: int) -> None:
    """Forget past failures, and end the pause."""
    values = {"failures": 0, "failing_since": None, "paused_until": None}
    tx.connection.execute(sa.update(webhooks).where(_c.id == webhook).values(**values))


def move_cursors(tx: Transaction, ids: Sequence[int], cursor: int) -> None:
    """Note up to which event the outbox of some webhooks is filled."""
    tx.execute(_MOVE, ids=tx.id_list(ids), cursor=cursor)


def delete(tx: Transaction, webhook: int) -> None:
    """Delete a webhook. Its deliveries are purged later, a batch at a time."""
    tx.connection.execute(sa.delete(webhooks).where(_c.id == webhook))


# --- who holds an endpoint ----------------------------------------------------------------------------------------

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
    """Take an endpoint that nobody holds or that its holder has left: `left` is who that was, and the last heartbeat seen."""
    if left is None:
        return tx.execute(_CLAIM_FREE, webhook=webhook, me=me) == 1
    return tx.execute(_CLAIM_LEFT, webhook=webhook, me=me, other=left[0], seen=left[1]) == 1


def renew(tx: Transaction, me: str) -> int:
    """Show by its heartbeat that this worker lives; give the number of endpoints that it holds."""
    return tx.execute(_RENEW, me=me)


def release(tx: Transaction, held: Iterable[int], me: str) -> None:
    """Let go of endpoints, those that somebody else holds by now apart."""
    for webhook in held:
        tx.execute(_RELEASE, webhook=webhook, me=me)


_SAVE = Statement(
    sa.update(webhooks)
    .where(_c.id == bindparam("webhook"), _c.owner == bindparam("me"))
    .values(
        failures=bindparam("failures"),
        failing_since=bindparam("failing_since"),
        attempted_at=bindparam("attempted_at"),
        paused_until=bindparam("paused_until"),
    )
)


def save_progress(tx: Transaction, webhook: Webhook, me: str) -> bool:
    """Write how an endpoint does. False, and nothing written, when somebody else holds the endpoint by now."""
    return bool(
        tx.execute(
            _SAVE,
            webhook=webhook.id,
            me=me,
            failures=webhook.failures,
            failing_since=webhook.failing_since,
            attempted_at=webhook.attempted_at,
            paused_until=webhook.paused_until,
        )
    )
