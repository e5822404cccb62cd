"""Webhooks record since when they have been tried without success, apart from the time in which nothing was tried."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None
effect = Effect(blocks=("webhooks",))

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column. So far it was the time since which they fail."""
    op.add_column("webhooks", sa.Column("tried_since", _PLAIN))
    op.execute("UPDATE webhooks SET tried_since = failing_since")
