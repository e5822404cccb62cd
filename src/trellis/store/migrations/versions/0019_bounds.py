"""Grants have bounds, and of those that are limited in that it is counted how often they are used."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from trellis.store.migrations.effect import Effect

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
effect = Effect(blocks=("api_keys",), unknown="bounds of grants")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the column, in which no grant has bounds yet, and the table of uses."""
    op.add_column("api_keys", sa.Column("bounds", _JSON, nullable=False, server_default="{}"))
    op.create_table(
        "grant_uses",
        sa.Column("key_id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("operation", _TEXT, primary_key=True),
        sa.Column("day", _TEXT, primary_key=True),
        sa.Column("times", _NUMBER, nullable=False),
    )
