"""The step that makes the outbox: what waits to be sent survives it, and is sent when it was to be sent."""

from typing import Any, Final

import sqlalchemy as sa

from trellis.settings import Settings
from trellis.store.engine import Store, open_engine
from trellis.store.migrate import migrate
from trellis.store.webhooks import Delivery, endpoints, outbox

_BEFORE: Final = "0007"
_WEBHOOK: Final = {
    "id": 1,
    "url": "https://hooks.example/",
    "events": '["*"]',
    "description": "",
    "enabled": True,
    "secret": "plain:AAAA",
    "created_at": "2026-01-31T09:00:00.000Z",
    "updated_at": "2026-01-31T09:00:00.000Z",
    "cursor": 7,
    "owner": "somebody",
    "beat": 3,
    "failures": 2,
    "failing_since": "2026-01-31T09:10:00.000Z",
    "attempted_at": "2026-01-31T09:12:00.000Z",
    "rests_until": "2026-01-31T09:13:00.000Z",
}
_DELIVERY: Final = {
    "webhook_id": 1,
    "message": "msg_1",
    "type": "forum.created",
    "state": "waiting",
    "step": 2,
    "attempts": 3,
    "due_at": "2026-01-31T09:30:00.000Z",
    "early": 0,
    "extras": 1,
    "created_at": "2026-01-31T09:10:00.000Z",
    "attempted_at": "2026-01-31T09:12:00.000Z",
}
_TEST: Final = {"seq": None, "type": "webhook.test", "step": 0, "attempts": 0, "extras": 0, "attempted_at": None}
_DELIVERIES: Final[tuple[dict[str, Any], ...]] = (
    _DELIVERY | {"seq": 5},
    _DELIVERY | {"seq": 6, "early": 1},
    _DELIVERY | {"seq": 7, "state": "delivered", "due_at": None},
    _DELIVERY | _TEST | {"due_at": "2026-01-31T09:10:00.000Z"},
)


def _insert(connection: sa.Connection, table: str, values: dict[str, Any]) -> None:
    events = "CAST(:events AS jsonb)" if connection.dialect.name == "postgresql" else ":events"
    given = ", ".join(events if name == "events" else f":{name}" for name in values)
    connection.execute(sa.text(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({given})"), values)  # noqa: S608  # names of columns


def _read(store: Store, now: str) -> list[Delivery]:
    with store.reading() as tx:
        return outbox.list_due(tx, 1, now, "9999", 10)


def test_what_waits_survives(empty_database: Settings) -> None:
    migrate(empty_database, to=_BEFORE)
    with open_engine(empty_database) as engine, engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        _insert(connection, "webhooks", _WEBHOOK)
        for values in _DELIVERIES:
            _insert(connection, "webhook_deliveries", values)
        connection.exec_driver_sql("COMMIT")

    migrate(empty_database)

    store = Store(empty_database)
    with store.reading() as tx:
        webhook = endpoints.find(tx, 1)
    assert webhook is not None
    assert (webhook.cursor, webhook.owner, webhook.heartbeat) == (7, "somebody", 3)
    assert (webhook.failures, webhook.paused_until) == (2, _WEBHOOK["rests_until"])
    assert webhook.tried_since == webhook.failing_since == _WEBHOOK["failing_since"]
    assert [one.seq for one in _read(store, "2026-01-31T09:20:00.000Z")] == [None, 6]  # what was brought forward is due
    due = _read(store, "2026-01-31T09:30:00.000Z")
    assert [(one.seq, one.scheduled_attempts, one.early_attempts) for one in due] == [(None, 0, 0), (5, 2, 1), (6, 2, 1)]
    store.close()
