"""Events keep the trace of the request that caused them."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0025"
down_revision = "0023"
branch_labels = None
depends_on = None
effect = Effect(blocks=("events",), unknown="traces of events")

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column."""
    op.add_column("events", sa.Column("traceparent", _PLAIN))
