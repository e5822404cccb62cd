"""Keys have a dialect."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
effect = Effect(blocks=("api_keys",), unknown="dialects of keys")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; the keys that there are keep our own dialect."""
    op.add_column("api_keys", sa.Column("dialect", _TEXT, nullable=False, server_default="trellis"))
