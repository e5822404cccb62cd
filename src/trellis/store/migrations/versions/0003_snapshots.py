"""Adds undo: copies of rows from before each change, and which event undoes which."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0003"
down_revision = "0002"
effect = Effect(blocks=("events",))


def upgrade() -> None:
    """Make the table of snapshots. Events from before this step have none, and cannot be undone."""
    op.add_column("events", sa.Column("undoes", NUMBER))
    undoes = sa.text("undoes IS NOT NULL")
    op.create_index("events_by_undone", "events", ["undoes"], sqlite_where=undoes, postgresql_where=undoes)
    op.create_table(
        "snapshots",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", PLAIN, primary_key=True),
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("how", PLAIN, nullable=False),
        sa.Column("parent_id", NUMBER),
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", PLAIN, nullable=False),
        sa.Column("fields", JSON, nullable=False),
        sa.Column("permissions", JSON, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("updated_at", PLAIN, nullable=False),
        sa.Column("beside", JSON),
    )
    op.create_index("snapshots_by_record", "snapshots", ["kind", "id", "seq"])
