"""Adds webhooks with their deliveries and attempts, and the idempotency key of the request to each event."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0004"
down_revision = "0003"
effect = Effect(blocks=("events",))


def upgrade() -> None:
    """Make the tables."""
    op.add_column("events", sa.Column("idempotency_key", PLAIN))
    op.create_table(
        "webhooks",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", JSON, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("secret", PLAIN, nullable=False),
        sa.Column("old_secret", PLAIN),
        sa.Column("old_until", PLAIN),
        sa.Column("disabled_at", PLAIN),
        sa.Column("disabled_because", sa.Text),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("updated_at", PLAIN, nullable=False),
        sa.Column("cursor", NUMBER, nullable=False),
        sa.Column("owner", PLAIN),
        sa.Column("beat", NUMBER, nullable=False),
        sa.Column("failures", NUMBER, nullable=False),
        sa.Column("failing_since", PLAIN),
        sa.Column("attempted_at", PLAIN),
        sa.Column("rests_until", PLAIN),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("webhook_id", NUMBER, nullable=False),
        sa.Column("seq", NUMBER),
        sa.Column("message", PLAIN, nullable=False),
        sa.Column("type", PLAIN, nullable=False),
        sa.Column("state", PLAIN, nullable=False),
        sa.Column("step", NUMBER, nullable=False),
        sa.Column("attempts", NUMBER, nullable=False),
        sa.Column("due_at", PLAIN),
        sa.Column("early", NUMBER, nullable=False),
        sa.Column("extras", NUMBER, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("attempted_at", PLAIN),
    )
    op.create_index("webhook_deliveries_waiting", "webhook_deliveries", ["state", "webhook_id", "seq"])
    op.create_index("webhook_deliveries_by_webhook", "webhook_deliveries", ["webhook_id", "id"])
    op.create_index("webhook_deliveries_by_time", "webhook_deliveries", ["created_at"])
    op.create_table(
        "webhook_attempts",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("delivery_id", NUMBER, nullable=False),
        sa.Column("at", PLAIN, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("duration", NUMBER, nullable=False),
        sa.Column("status", NUMBER),
        sa.Column("error", sa.Text),
        sa.Column("answer", sa.Text),
    )
    op.create_index("webhook_attempts_by_delivery", "webhook_attempts", ["delivery_id"])
