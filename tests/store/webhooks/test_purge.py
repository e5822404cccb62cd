"""Purging the delivery log: what goes, and that no batch reads every row."""

from typing import Any

import pytest
import sqlalchemy as sa

from trellis.core.gate import Gate
from trellis.store.engine import Transaction
from trellis.store.tables import deliveries, webhooks
from trellis.store.webhooks import Delivery, log, outbox

_AT = "2026-01-31T09:30:00.000Z"
_KEEP = 2
_WEBHOOK = {
    "url": "https://hooks.example/",
    "events": ["*"],
    "description": "",
    "enabled": True,
    "secret": "plain:",
    "created_at": _AT,
    "updated_at": _AT,
    "cursor": 0,
    "heartbeat": 0,
    "failures": 0,
}


def _fill(tx: Transaction) -> None:
    for number in (1, 2):
        tx.connection.execute(sa.insert(webhooks).values(_WEBHOOK | {"id": number}))
    for number in (1, 2, 3):  # the last one was deleted
        for seq in range(1, 6):
            outbox.insert(tx, Delivery(0, number, seq, f"msg_{seq}", "forum.created", "delivered", None, _AT))
        outbox.insert(tx, Delivery(0, number, 6, "msg_6", "forum.created", "waiting", _AT, _AT))


@pytest.mark.parametrize("most", [1, 4, 100])
def test_what_goes_is_old_or_more_than_is_kept_or_of_a_webhook_that_was_deleted(gate: Gate, most: int) -> None:
    gate.store.write(_fill).result(30)
    counts = []
    while gone := gate.store.write(lambda tx: log.purge(tx, _AT, _KEEP, most)).result(30):
        counts.append(gone)
    assert (max(counts), sum(counts)) == (min(most, 14), 14)
    with gate.store.reading() as tx:
        left = tx.connection.execute(sa.select(deliveries.c.webhook_id, deliveries.c.seq).order_by(deliveries.c.id)).all()
    assert [tuple(row) for row in left] == [(number, seq) for number in (1, 2) for seq in (5, 6)]
    assert gate.store.write(lambda tx: log.purge(tx, "9999", _KEEP)).result(30) == 2


def test_no_batch_reads_every_row(gate: Gate) -> None:
    gate.store.write(_fill).result(30)
    executed: list[tuple[str, Any]] = []

    def collect(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    sa.event.listen(gate.store.engine, "before_cursor_execute", collect)
    gate.store.write(lambda tx: log.purge(tx, _AT, _KEEP)).result(30)
    with gate.store.reading() as tx:
        asked = executed if tx.sqlite else []
        plans = [str(row[3]) for sql, given in asked for row in tx.raw.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    assert not [step for step in plans if step.startswith("SCAN") and webhooks.name not in step.split()], plans
