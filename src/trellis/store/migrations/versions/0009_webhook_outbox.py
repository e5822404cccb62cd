"""Adds an outbox for webhook deliveries: when each is retried, and which process delivers to an endpoint."""

from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0009"
down_revision = "0008"
effect = Effect(blocks=("webhooks", "webhook_deliveries"), reads=False, writes=False)


def upgrade() -> None:
    """Rename the columns, and let what was to go before its time be due now. Nothing that waits is lost."""
    op.execute("ALTER TABLE webhooks RENAME COLUMN beat TO heartbeat")
    op.execute("ALTER TABLE webhooks RENAME COLUMN rests_until TO paused_until")
    op.execute("ALTER TABLE webhook_deliveries RENAME COLUMN extras TO early_attempts")
    op.execute("UPDATE webhook_deliveries SET due_at = created_at WHERE state = 'waiting' AND early = 1")
    op.execute("ALTER TABLE webhook_deliveries DROP COLUMN early")
    op.execute("ALTER TABLE webhook_deliveries DROP COLUMN attempts")
