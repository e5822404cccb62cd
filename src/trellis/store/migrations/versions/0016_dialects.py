"""Adds the dialects of keys."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0016"
down_revision = "0015"
effect = Effect(blocks=("api_keys",), unknown="dialects of keys")


def upgrade() -> None:
    """Add the column; the keys that there are keep our own dialect."""
    op.add_column("api_keys", sa.Column("dialect", PLAIN, nullable=False, server_default="trellis"))
