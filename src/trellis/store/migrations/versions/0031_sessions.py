"""Records how each session was confirmed, which is unknown for existing sessions."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0031"
down_revision = "0029"
effect = Effect(blocks=("sessions",))


def upgrade() -> None:
    """Add the column."""
    op.add_column("sessions", sa.Column("confirmed_with", PLAIN))
