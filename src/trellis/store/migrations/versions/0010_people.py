"""Adds passwords that must be changed, failed sign-ins by minute, and who created a webhook."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0010"
down_revision = "0009"
effect = Effect(blocks=("administrators", "webhooks"))


def upgrade() -> None:
    """Add the columns and the table. Passwords from before this step need no change; makers of webhooks are read from events."""
    op.add_column("administrators", sa.Column("must_change", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("webhooks", sa.Column("maker", JSON))
    op.execute(
        "UPDATE webhooks SET maker = (SELECT actor FROM events WHERE operation = 'webhooks.create' AND resource_id = webhooks.id"
        " ORDER BY seq DESC LIMIT 1)"
    )
    op.create_table(
        "failed_sign_ins",
        sa.Column("minute", PLAIN, primary_key=True),
        sa.Column("address", PLAIN, primary_key=True),
        sa.Column("admin_id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("attempts", NUMBER, nullable=False),
    )
