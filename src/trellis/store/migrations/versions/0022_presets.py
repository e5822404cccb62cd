"""Keys are made with presets, have a number of uses a day, and can be paused."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
effect = Effect(blocks=("api_keys",), unknown="paused keys, and keys with a limit for each day")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns: no key has a preset yet, is limited in a day, or is paused."""
    op.add_column("api_keys", sa.Column("per_day", _NUMBER))
    op.add_column("api_keys", sa.Column("preset", _TEXT))
    op.add_column("api_keys", sa.Column("paused_at", _TEXT))
    op.add_column("api_keys", sa.Column("paused_because", sa.Text()))
