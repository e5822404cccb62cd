"""Webhooks, their deliveries and attempts; the idempotency key of a request stands in its event."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from trellis.store.migrations.effect import Effect

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
effect = Effect(blocks=("events",))

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.add_column("events", sa.Column("idempotency_key", _PLAIN))
    op.create_table(
        "webhooks",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", _JSON, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("secret", _PLAIN, nullable=False),
        sa.Column("old_secret", _PLAIN),
        sa.Column("old_until", _PLAIN),
        sa.Column("disabled_at", _PLAIN),
        sa.Column("disabled_because", sa.Text),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("updated_at", _PLAIN, nullable=False),
        sa.Column("cursor", _NUMBER, nullable=False),
        sa.Column("owner", _PLAIN),
        sa.Column("beat", _NUMBER, nullable=False),
        sa.Column("failures", _NUMBER, nullable=False),
        sa.Column("failing_since", _PLAIN),
        sa.Column("attempted_at", _PLAIN),
        sa.Column("rests_until", _PLAIN),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("webhook_id", _NUMBER, nullable=False),
        sa.Column("seq", _NUMBER),
        sa.Column("message", _PLAIN, nullable=False),
        sa.Column("type", _PLAIN, nullable=False),
        sa.Column("state", _PLAIN, nullable=False),
        sa.Column("step", _NUMBER, nullable=False),
        sa.Column("attempts", _NUMBER, nullable=False),
        sa.Column("due_at", _PLAIN),
        sa.Column("early", _NUMBER, nullable=False),
        sa.Column("extras", _NUMBER, nullable=False),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("attempted_at", _PLAIN),
    )
    op.create_index("webhook_deliveries_waiting", "webhook_deliveries", ["state", "webhook_id", "seq"])
    op.create_index("webhook_deliveries_by_webhook", "webhook_deliveries", ["webhook_id", "id"])
    op.create_index("webhook_deliveries_by_time", "webhook_deliveries", ["created_at"])
    op.create_table(
        "webhook_attempts",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("delivery_id", _NUMBER, nullable=False),
        sa.Column("at", _PLAIN, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("duration", _NUMBER, nullable=False),
        sa.Column("status", _NUMBER),
        sa.Column("error", sa.Text),
        sa.Column("answer", sa.Text),
    )
    op.create_index("webhook_attempts_by_delivery", "webhook_attempts", ["delivery_id"])
