"""Adds roles of administrators; existing administrators may still do everything."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0029"
down_revision = "0028"
effect = Effect(blocks=("administrators",), unknown="roles of administrators: it lets all of them do everything")


def upgrade() -> None:
    """Add the columns: everybody is an owner."""
    op.add_column("administrators", sa.Column("role", PLAIN, nullable=False, server_default="owner"))
    op.add_column("administrators", sa.Column("kinds", PLAIN))
