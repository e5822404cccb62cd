"""Adds the language in which each administrator sees the panel."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0038"
down_revision = "0037"
effect = Effect(blocks=("administrators",), unknown="languages of administrators")


def upgrade() -> None:
    """Make the column; nobody has chosen yet."""
    op.add_column("administrators", sa.Column("language", PLAIN, nullable=False, server_default=sa.text("''")))
