"""Records since when each webhook has failed, without the time in which nothing was sent to it."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0041"
down_revision = "0040"
effect = Effect(blocks=("webhooks",))


def upgrade() -> None:
    """Add the column. So far it was the time since which they fail."""
    op.add_column("webhooks", sa.Column("tried_since", PLAIN))
    op.execute("UPDATE webhooks SET tried_since = failing_since")
