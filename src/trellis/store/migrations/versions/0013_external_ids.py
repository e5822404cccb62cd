"""Nodes have an external id: what another system calls them, unique in their kind."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
effect = Effect(blocks=("nodes", "snapshots"))

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns, empty, and the index. No row is written."""
    op.add_column("nodes", sa.Column("external_id", _TEXT))
    op.add_column("snapshots", sa.Column("external_id", _TEXT))
    op.execute("CREATE UNIQUE INDEX nodes_by_external_id ON nodes (kind, external_id) WHERE external_id IS NOT NULL")
