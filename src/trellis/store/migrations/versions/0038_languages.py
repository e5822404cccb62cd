"""The language in which each administrator sees the panel."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None
effect = Effect(blocks=("administrators",), unknown="languages of administrators")

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the column; nobody has chosen yet."""
    op.add_column("administrators", sa.Column("language", _PLAIN, nullable=False, server_default=sa.text("''")))
