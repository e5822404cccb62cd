"""Rows of webhooks, deliveries and attempts, written and read as the delivery worker would; and the forms that make webhooks."""

import re
from typing import Any, Final

import sqlalchemy as sa

from tests.admin.conftest import Visitor
from trellis.core.gate import Gate
from trellis.store.tables import METADATA, webhooks
from trellis.store.webhooks import Attempt, Delivery, outbox

URL: Final = "https://hooks.example/trellis"
HOSTILE: Final = """<script>alert(1)</script>"'><img src=x onerror=alert(1)>{{7*7}}"""
FORM: Final = {"url": URL, "description": "Search index", "enabled": "1", "events": ["", "forum.*"]}


def open_form(admin: Visitor, path: str = "/webhooks/new", **values: Any) -> dict[str, Any]:
    """Open a form; give what it would send with some values typed in."""
    page = admin.get(path)
    hidden = dict(re.findall(r'<input type="hidden" name="(_\w+)" value="([^"]*)"', page.text))
    return FORM | hidden | values


def find_secret(page: Any) -> str | None:
    """Find a secret on a page."""
    found = re.search(r"whsec_[A-Za-z0-9+/]{43}=", page.text)
    return found[0] if found else None


def insert_delivery(gate: Gate, *attempts: dict[str, Any], **values: Any) -> int:
    """Write a delivery of webhook 1 with its attempts, as delivery does; give its id."""
    now = gate.now()
    told: dict[str, Any] = {
        "id": 0,
        "webhook_id": 1,
        "seq": None,
        "message": "msg_0123456789abcdef",
        "type": "webhook.test",
        "state": "delivered",
        "scheduled_attempts": len(attempts),
        "due_at": None,
        "created_at": now,
        "attempted_at": now if attempts else None,
    }
    delivery = Delivery(**(told | values))

    def write(tx: Any) -> int:
        delivery.id = outbox.insert(tx, delivery)
        for given in attempts:
            attempt = Attempt(now, URL, 12, 200, None, "fine")._replace(**given)
            outbox.record_attempt(tx, delivery, attempt, delivery)
        return delivery.id

    return gate.store.write(write).result(30)


def update_webhook(gate: Gate, webhook: int, **values: Any) -> None:
    """Write how a webhook does, as delivery does."""
    statement = sa.update(webhooks).where(webhooks.c.id == webhook).values(**values)
    gate.store.write(lambda tx: tx.connection.execute(statement)).result(30)


def stored_rows(gate: Gate) -> dict[str, list[Any]]:
    """Return everything that is kept of webhooks, deliveries and events."""
    names = ("webhooks", "webhook_deliveries", "webhook_attempts", "events")
    with gate.store.reading() as tx:
        tables = [METADATA.tables[name] for name in names]
        return {t.name: [*map(tuple, tx.connection.execute(sa.select(t).order_by(*t.primary_key.columns)))] for t in tables}
