"""A key that the names of plans are made with, so that they tell nothing of the passwords in a plan."""

import secrets

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
effect = Effect()

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, with one new key."""
    table = op.create_table(
        "signing_keys",
        sa.Column("purpose", _TEXT, primary_key=True),
        sa.Column("key", _TEXT, nullable=False),
    )
    op.bulk_insert(table, [{"purpose": "plans", "key": secrets.token_hex(32)}])
