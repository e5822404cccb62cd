"""Adds proposals, which are calls that wait for approval, and records which events came from an approved one."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0020"
down_revision = "0019"
effect = Effect(blocks=("events",), unknown="proposals")


def upgrade() -> None:
    """Make the table, and the columns of events."""
    op.create_table(
        "proposals",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("handle", PLAIN, nullable=False),
        sa.Column("state", PLAIN, nullable=False),
        sa.Column("actor_type", PLAIN, nullable=False),
        sa.Column("actor_id", NUMBER, nullable=False),
        sa.Column("actor_name", sa.Text, nullable=False),
        sa.Column("operation", PLAIN, nullable=False),
        sa.Column("target", NUMBER),
        sa.Column("about", sa.Text),
        sa.Column("identity", PLAIN, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("idempotency_key", PLAIN),
        sa.Column("change_set", PLAIN),
        sa.Column("etag", PLAIN),
        sa.Column("counts", JSON, nullable=False),
        sa.Column("revision", NUMBER, nullable=False),
        sa.Column("digest", PLAIN, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("size", NUMBER, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("expires_at", PLAIN, nullable=False),
        sa.Column("closed_at", PLAIN),
        sa.Column("closed_by", JSON),
        sa.Column("closed_because", sa.Text),
        sa.Column("event", NUMBER),
    )
    op.create_index("proposals_by_state", "proposals", ["state", "expires_at"])
    op.create_index("proposals_by_actor", "proposals", ["actor_type", "actor_id", "state", "id"])
    op.create_index("proposals_by_identity", "proposals", ["identity"])
    op.add_column("events", sa.Column("proposal", NUMBER))
    op.add_column("events", sa.Column("approved_by", JSON))
