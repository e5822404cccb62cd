"""Undo: rows as they were before each change, and which event takes back which."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from trellis.store.migrations.effect import Effect

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
effect = Effect(blocks=("events",))

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table of snapshots. Events from before this step have none, and cannot be undone."""
    op.add_column("events", sa.Column("undoes", _NUMBER))
    undoes = sa.text("undoes IS NOT NULL")
    op.create_index("events_by_undone", "events", ["undoes"], sqlite_where=undoes, postgresql_where=undoes)
    op.create_table(
        "snapshots",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", _PLAIN, primary_key=True),
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("how", _PLAIN, nullable=False),
        sa.Column("parent_id", _NUMBER),
        sa.Column("position", _NUMBER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", _PLAIN, nullable=False),
        sa.Column("fields", _JSON, nullable=False),
        sa.Column("permissions", _JSON, nullable=False),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("updated_at", _PLAIN, nullable=False),
        sa.Column("beside", _JSON),
    )
    op.create_index("snapshots_by_record", "snapshots", ["kind", "id", "seq"])
