"""Sessions record how they were confirmed, which is not known of existing ones."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0031"
down_revision = "0029"
branch_labels = None
depends_on = None
effect = Effect(blocks=("sessions",))

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column."""
    op.add_column("sessions", sa.Column("confirmed_with", _PLAIN))
