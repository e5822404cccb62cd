"""Adds change sets: events that belong together, because they are of one batch or their caller said so."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0014"
down_revision = "0013"
effect = Effect(blocks=("events",))


def upgrade() -> None:
    """Make the table, and the column by which an event belongs to a change set."""
    op.create_table(
        "change_sets",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("actor_type", PLAIN, nullable=False),
        sa.Column("actor_id", NUMBER, nullable=False),
        sa.Column("name", PLAIN),
        sa.Column("at", PLAIN, nullable=False),
    )
    op.execute("CREATE UNIQUE INDEX change_sets_by_name ON change_sets (actor_type, actor_id, name) WHERE name IS NOT NULL")
    op.add_column("events", sa.Column("change_set", NUMBER))
    op.execute("CREATE INDEX events_by_change_set ON events (change_set, seq) WHERE change_set IS NOT NULL")
