"""The rows of webhooks: what was asked for, and how far delivery is."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import counters, webhooks

_c = webhooks.c


@dataclass(slots=True)
class Webhook:
    """An endpoint. Moments are ISO 8601 text, UTC; `secret` is as core/webhook_secret.py keeps it."""

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
    beat: int = 0
    failures: int = 0
    failing_since: str | None = None
    attempted_at: str | None = None
    rests_until: str | None = None

    def __repr__(self) -> str:
        return f"Webhook({self.id}, {self.url!r})"


_COLUMNS = tuple(_c[f.name] for f in fields(Webhook))
# Written by the worker that holds the endpoint, never by an operation.
_BOOKKEEPING: Final = frozenset({"id", "cursor", "owner", "beat", "failures", "failing_since", "attempted_at", "rests_until"})
_ENABLED = Statement(sa.select(*_COLUMNS).where(_c.enabled == sa.true()).order_by(_c.id))
_FIND = Statement(sa.select(*_COLUMNS).where(_c.id == bindparam("id")))


def find(tx: Transaction, webhook: int) -> Webhook | None:
    """Read one webhook."""
    rows = tx.fetch(_FIND, id=webhook)
    return _webhook(rows[0], tx) if rows else None


def enabled(tx: Transaction) -> list[Webhook]:
    """Read all webhooks that are switched on."""
    return [_webhook(row, tx) for row in tx.fetch(_ENABLED)]


def _webhook(row: Sequence[Any], tx: Transaction) -> Webhook:
    webhook = Webhook(*row)
    webhook.events, webhook.enabled = tx.decode(webhook.events), bool(webhook.enabled)
    return webhook


def page(tx: Transaction, limit: int, offset: int) -> tuple[int, list[Webhook]]:
    """Read a page of webhooks, and how many there are."""
    rows = tx.connection.execute(sa.select(*_COLUMNS).order_by(_c.id).limit(limit).offset(offset))
    return count(tx), [_webhook(row, tx) for row in rows]


def count(tx: Transaction) -> int:
    """Count the webhooks."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(webhooks)).scalar_one())


def failing(tx: Transaction) -> list[Webhook]:
    """Read the webhooks whose last attempts have failed, and those that the service has switched off."""
    now = sa.and_(_c.enabled == sa.true(), _c.failing_since.is_not(None))
    given_up = sa.and_(_c.enabled == sa.false(), _c.disabled_because.is_not(None))
    rows = tx.connection.execute(sa.select(*_COLUMNS).where(sa.or_(now, given_up)).order_by(_c.id))
    return [_webhook(row, tx) for row in rows]


def insert(tx: Transaction, webhook: Webhook) -> None:
    """Write a new webhook."""
    tx.connection.execute(sa.insert(webhooks).values(**asdict(webhook)))


def update(tx: Transaction, webhook: Webhook) -> None:
    """Write what was asked for anew; how far delivery is stays as it is."""
    values = {name: value for name, value in asdict(webhook).items() if name not in _BOOKKEEPING}
    tx.connection.execute(sa.update(webhooks).where(_c.id == webhook.id).values(**values))


def start_anew(tx: Transaction, webhook: int, cursor: int | None) -> None:
    """Forget past failures; with a cursor, pass over the events up to it."""
    values: dict[str, Any] = {"failures": 0, "failing_since": None, "rests_until": None}
    if cursor is not None:
        values["cursor"] = cursor
    tx.connection.execute(sa.update(webhooks).where(_c.id == webhook).values(**values))


def delete(tx: Transaction, webhook: int) -> None:
    """Delete a webhook. Its deliveries are purged later, a batch at a time."""
    tx.connection.execute(sa.delete(webhooks).where(_c.id == webhook))


_LAST = Statement(sa.select(counters.c.last).where(counters.c.name == "events"))


def last_event(tx: Transaction) -> int:
    """Give the number of the latest event; 0 without one."""
    rows = tx.fetch(_LAST)
    return int(rows[0][0]) if rows else 0


# --- who holds an endpoint ----------------------------------------------------------------------------------------

_CLAIM_FREE = Statement(
    sa.update(webhooks)
    .where(_c.id == bindparam("webhook"), _c.enabled == sa.true(), _c.owner.is_(None))
    .values(owner=bindparam("me"), beat=_c.beat + 1)
)
_CLAIM_LEFT = Statement(
    sa.update(webhooks)
    .where(_c.id == bindparam("webhook"), _c.enabled == sa.true(), _c.owner == bindparam("other"), _c.beat == bindparam("seen"))
    .values(owner=bindparam("me"), beat=_c.beat + 1)
)
_KEEP = Statement(sa.update(webhooks).where(_c.owner == bindparam("me")).values(beat=_c.beat + 1))
_RELEASE = Statement(sa.update(webhooks).where(_c.id == bindparam("webhook"), _c.owner == bindparam("me")).values(owner=sa.null()))


def claim(tx: Transaction, webhook: int, me: str, left: tuple[str, int] | None) -> bool:
    """Take an endpoint that nobody holds or that its holder has left: `left` is who that was, and the last beat seen."""
    if left is None:
        return tx.execute(_CLAIM_FREE, webhook=webhook, me=me) == 1
    return tx.execute(_CLAIM_LEFT, webhook=webhook, me=me, other=left[0], seen=left[1]) == 1


def keep(tx: Transaction, me: str) -> int:
    """Show that this worker lives; give the number of endpoints that it holds."""
    return tx.execute(_KEEP, me=me)


def release(tx: Transaction, held: Iterable[int], me: str) -> None:
    """Let go of endpoints, those that somebody else holds by now apart."""
    for webhook in held:
        tx.execute(_RELEASE, webhook=webhook, me=me)


_PROGRESS = Statement(
    sa.update(webhooks)
    .where(_c.id == bindparam("webhook"), _c.owner == bindparam("me"))
    .values(
        cursor=bindparam("cursor"),
        failures=bindparam("failures"),
        failing_since=bindparam("failing_since"),
        attempted_at=bindparam("attempted_at"),
        rests_until=bindparam("rests_until"),
    )
)


def progress(tx: Transaction, webhook: Webhook, me: str) -> bool:
    """Write how far delivery is. False, and nothing written, when somebody else holds the endpoint by now."""
    return bool(
        tx.execute(
            _PROGRESS,
            webhook=webhook.id,
            me=me,
            cursor=webhook.cursor,
            failures=webhook.failures,
            failing_since=webhook.failing_since,
            attempted_at=webhook.attempted_at,
            rests_until=webhook.rests_until,
        )
    )
