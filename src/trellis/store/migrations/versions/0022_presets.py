"""Adds presets of keys, limits on the daily uses of a key, and pausing of keys."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0022"
down_revision = "0021"
effect = Effect(blocks=("api_keys",), unknown="paused keys, and keys with a limit for each day")


def upgrade() -> None:
    """Add the columns: no key has a preset yet, is limited in a day, or is paused."""
    op.add_column("api_keys", sa.Column("per_day", NUMBER))
    op.add_column("api_keys", sa.Column("preset", PLAIN))
    op.add_column("api_keys", sa.Column("paused_at", PLAIN))
    op.add_column("api_keys", sa.Column("paused_because", sa.Text()))
