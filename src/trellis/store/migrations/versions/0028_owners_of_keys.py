"""Adds owners and notes of keys, and an index that finds requests by their request id."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0028"
down_revision = "0026"
effect = Effect(seconds={"requests": (3.5, 3)}, blocks=("api_keys",), unknown="owners and notes of keys")


def upgrade() -> None:
    """Add the columns: no key has an owner or a note yet. And make the index."""
    op.add_column("api_keys", sa.Column("owner", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("api_keys", sa.Column("note", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.create_index("requests_by_request_id", "requests", ["request_id"])
