"""Lets documents manage nodes, and records the operation that began each change set."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0015"
down_revision = "0014"
effect = Effect(blocks=("nodes", "snapshots", "change_sets"))


def upgrade() -> None:
    """Add the columns, empty. No row is written."""
    op.add_column("nodes", sa.Column("managed_by", PLAIN))
    op.add_column("snapshots", sa.Column("managed_by", PLAIN))
    op.add_column("change_sets", sa.Column("operation", PLAIN))
