"""Documents manage nodes, and change sets know the operation that began them."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
effect = Effect(blocks=("nodes", "snapshots", "change_sets"))

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns, empty. No row is written."""
    op.add_column("nodes", sa.Column("managed_by", _TEXT))
    op.add_column("snapshots", sa.Column("managed_by", _TEXT))
    op.add_column("change_sets", sa.Column("operation", _TEXT))
