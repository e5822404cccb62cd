"""Adds the outbox for mail."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0034"
down_revision = "0033"
effect = Effect(unknown="mail, which it does not send")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "mails",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("kind", PLAIN, nullable=False),
        sa.Column("admin_id", NUMBER, nullable=False),
        sa.Column("recipient", sa.Text),
        sa.Column("first", NUMBER),
        sa.Column("last", NUMBER),
        sa.Column("state", PLAIN, nullable=False),
        sa.Column("attempts", NUMBER, nullable=False),
        sa.Column("due_at", PLAIN, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("attempted_at", PLAIN),
        sa.Column("error", sa.Text),
    )
    op.create_index("mails_by_state", "mails", ["state", "due_at"])
    op.create_index("mails_by_admin", "mails", ["admin_id", "id"])
