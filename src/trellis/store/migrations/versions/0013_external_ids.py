"""Adds external ids: the ids of nodes in another system, unique within a kind."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0013"
down_revision = "0012"
effect = Effect(blocks=("nodes", "snapshots"))


def upgrade() -> None:
    """Add the columns, empty, and the index. No row is written."""
    op.add_column("nodes", sa.Column("external_id", PLAIN))
    op.add_column("snapshots", sa.Column("external_id", PLAIN))
    op.execute("CREATE UNIQUE INDEX nodes_by_external_id ON nodes (kind, external_id) WHERE external_id IS NOT NULL")
