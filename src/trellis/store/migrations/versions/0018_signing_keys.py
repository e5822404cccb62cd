"""Adds a secret for the names of plans, so that a name reveals nothing about the passwords in a plan."""

import secrets

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0018"
down_revision = "0017"
effect = Effect()


def upgrade() -> None:
    """Add the table, with one new key."""
    table = op.create_table(
        "signing_keys",
        sa.Column("purpose", PLAIN, primary_key=True),
        sa.Column("key", PLAIN, nullable=False),
    )
    op.bulk_insert(table, [{"purpose": "plans", "key": secrets.token_hex(32)}])
