"""Purging the delivery log: what goes, and that no batch reads every row."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from trellis import housekeeping
from trellis.core.gate import Gate
from trellis.store.engine import Store, Transaction
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


def _purge(gate: Gate, delete: Callable[[Transaction], int]) -> Iterator[int]:
    """Yield how many deliveries each batch deletes."""
    while gone := gate.store.write(delete).result(30):
        yield gone


@pytest.mark.parametrize("most", [1, 4, 100])
def test_what_goes_is_old_or_more_than_is_kept_or_of_a_webhook_that_was_deleted(gate: Gate, most: int) -> None:
    gate.store.write(_fill).result(30)
    counts = [*_purge(gate, lambda tx: log.purge(tx, _AT, most))]
    assert (max(counts), sum(counts)) == (min(most, 6), 6)
    for webhook in gate.store.write(log.list_webhooks).result(30):
        counts = [*_purge(gate, partial(log.purge_webhook, webhook=webhook, keep=_KEEP, most=most))]
        assert (max(counts), sum(counts)) == (min(most, 4), 4)
    with gate.store.reading() as tx:
        left = tx.connection.execute(sa.select(deliveries.c.webhook_id, deliveries.c.seq).order_by(deliveries.c.id)).all()
    assert [tuple(row) for row in left] == [(number, seq) for number in (1, 2) for seq in (5, 6)]
    assert gate.store.write(lambda tx: log.purge(tx, "9999")).result(30) == 2


def test_no_batch_reads_every_row(gate: Gate) -> None:
    gate.store.write(_fill).result(30)
    executed: list[tuple[str, Any]] = []

    def collect(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    sa.event.listen(gate.store.engine, "before_cursor_execute", collect)
    gate.store.write(lambda tx: log.purge(tx, _AT)).result(30)
    gate.store.write(lambda tx: log.purge_webhook(tx, 1, _KEEP)).result(30)
    with gate.store.reading() as tx:
        asked = executed if tx.sqlite else []
        plans = [str(row[3]) for sql, given in asked for row in tx.raw.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    assert not [step for step in plans if step.startswith("SCAN") and webhooks.name not in step.split()], plans


def test_other_writes_run_between_webhooks(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_MOST_DELIVERIES", _KEEP)
    gate.store.write(_fill).result(30)
    counted = list[int]()  # how often each write has looked for what is beyond the latest deliveries of a webhook

    def write(work: Callable[[Transaction], Any], **options: Any) -> Any:
        counted.append(0)
        return Store.write(gate.store, work, **options)

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        counted[-1] += "ORDER BY webhook_deliveries.id DESC" in statement

    monkeypatch.setattr(gate.store, "write", write)
    sa.event.listen(gate.store.engine, "before_cursor_execute", count)
    asyncio.run(housekeeping.Purges(gate, gate.store.settings).run(trusting=True))
    with gate.store.reading() as tx:
        left = tx.connection.execute(sa.select(deliveries.c.webhook_id).order_by(deliveries.c.webhook_id)).scalars()
        assert [*left] == [1, 1, 2, 2]
    assert max(counted) == 1
