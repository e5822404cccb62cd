"""The tables of webhooks, of messages to them, and of attempts to send the messages."""

import sqlalchemy as sa

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.tables.metadata import declare_table

webhooks = declare_table(
    "webhooks",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", JSON, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("secret", PLAIN, nullable=False),  # see core/webhooks/secret.py
    sa.Column("old_secret", PLAIN),
    sa.Column("old_until", PLAIN),
    sa.Column("disabled_at", PLAIN),
    sa.Column("disabled_because", sa.Text),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("cursor", NUMBER, nullable=False),  # the last event that was processed for the outbox
    # The columns down to `paused_until` are bookkeeping of the worker that has leased the endpoint:
    sa.Column("owner", PLAIN),  # the worker
    sa.Column("heartbeat", NUMBER, nullable=False),  # increases while the worker lives
    sa.Column("failures", NUMBER, nullable=False),  # failed attempts in a row
    sa.Column("failing_since", PLAIN),
    sa.Column("attempted_at", PLAIN),
    sa.Column("paused_until", PLAIN),
    sa.Column("maker", JSON),  # who created it, or last switched it on, changed its address or added events
    sa.Column("tried_since", PLAIN),  # also by the worker: the first failure, moved forward by times without attempts
)

# The outbox and its log: one row for each event and endpoint that subscribes to it.
deliveries = declare_table(
    "webhook_deliveries",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("webhook_id", NUMBER, nullable=False),
    sa.Column("seq", NUMBER),  # the event; null for a test
    sa.Column("message", PLAIN, nullable=False),  # the webhook-id
    sa.Column("type", PLAIN, nullable=False),
    sa.Column("state", PLAIN, nullable=False),  # waiting, delivered or failed
    sa.Column("step", NUMBER, key="scheduled_attempts", nullable=False),  # attempts made when they were due
    sa.Column("early_attempts", NUMBER, nullable=False),  # attempts made before they were due
    sa.Column("due_at", PLAIN),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("attempted_at", PLAIN),
    sa.Index("webhook_deliveries_waiting", "state", "webhook_id", "seq"),
    sa.Index("webhook_deliveries_by_webhook", "webhook_id", "id"),
    sa.Index("webhook_deliveries_by_time", "created_at"),
)

attempts = declare_table(
    "webhook_attempts",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("delivery_id", NUMBER, nullable=False),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("duration", NUMBER, nullable=False),  # milliseconds
    sa.Column("status", NUMBER),
    sa.Column("error", sa.Text),
    sa.Column("answer", sa.Text),
    sa.Index("webhook_attempts_by_delivery", "delivery_id"),
)
