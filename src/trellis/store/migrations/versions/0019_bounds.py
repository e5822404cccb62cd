"""Adds bounds of grants, and counts the uses of grants that have a limit."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0019"
down_revision = "0018"
effect = Effect(blocks=("api_keys",), unknown="bounds of grants")


def upgrade() -> None:
    """Add the column, in which no grant has bounds yet, and the table of uses."""
    op.add_column("api_keys", sa.Column("bounds", JSON, nullable=False, server_default="{}"))
    op.create_table(
        "grant_uses",
        sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("operation", PLAIN, primary_key=True),
        sa.Column("day", PLAIN, primary_key=True),
        sa.Column("times", NUMBER, nullable=False),
    )
