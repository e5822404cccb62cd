"""Figures that monitoring reads from the database, such as its size, the newest event and the delays of webhooks."""

from pathlib import Path
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store import events, last_runs, mail, proposals
from trellis.store.engine import Statement, Transaction
from trellis.store.sqlite import find_real_file
from trellis.store.tables import deliveries, webhooks
from trellis.store.tables import events as log

_d, _e, _w = deliveries.c, log.c, webhooks.c
_FIRST_WAITING: Final = (
    sa.select(sa.func.min(_d.seq)).where(_d.state == "waiting", _d.webhook_id == _w.id).correlate(webhooks).scalar_subquery()
)
_WEBHOOKS: Final = Statement(
    sa.select(_w.id, _w.failures, _w.cursor, _FIRST_WAITING).where(_w.enabled == sa.true()).order_by(_w.id)
)
_NEXT: Final = Statement(sa.select(_e.at).where(_e.seq > sa.bindparam("cursor")).order_by(_e.seq).limit(1))


class WebhookFigures(NamedTuple):
    """A webhook that is switched on: its failures in a row, and the time of its oldest event that is not delivered yet."""

    id: int
    failures: int
    waiting_since: str | None


class Figures(NamedTuple):
    """The figures for monitoring.

    `size` is in bytes, on SQLite including the write-ahead log. `proposals` counts the open ones, and `mails` those still to be
    sent. `last_backup` is when `trellis backup` last made one, in Unix milliseconds; None if it has not.
    """

    newest_event: int
    size: int
    webhooks: list[WebhookFigures]
    proposals: int
    last_backup: int | None
    mails: int


def read_figures(tx: Transaction, now: str) -> Figures:
    """Read the figures."""
    _, newest = events.find_span(tx)
    found = [
        WebhookFigures(number, failures, _find_waiting_since(tx, cursor, waiting, newest))
        for number, failures, cursor, waiting in tx.fetch(_WEBHOOKS)
    ]
    return Figures(
        newest, _measure(tx), found, proposals.count_open(tx, now), last_runs.find(tx, last_runs.BACKUP), mail.count_waiting(tx)
    )


def _find_waiting_since(tx: Transaction, cursor: int, waiting: int | None, newest: int) -> str | None:
    if waiting is not None:
        return events.find_timestamp(tx, waiting)
    if cursor >= newest:
        return None
    rows = tx.fetch(_NEXT, cursor=cursor)
    return str(rows[0][0]) if rows else None


def _measure(tx: Transaction) -> int:
    if not tx.sqlite:
        return int(tx.connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())
    file = find_real_file(tx.connection.engine.url.database or "")
    return sum(path.stat().st_size for path in (file, Path(f"{file}-wal")) if path.exists())
