"""Proposals: calls that wait for somebody's approval, and which events came of one that was approved."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from trellis.store.migrations.effect import Effect

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
effect = Effect(blocks=("events",), unknown="proposals")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Make the table, and the columns of events."""
    op.create_table(
        "proposals",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("handle", _TEXT, nullable=False),
        sa.Column("state", _TEXT, nullable=False),
        sa.Column("actor_type", _TEXT, nullable=False),
        sa.Column("actor_id", _NUMBER, nullable=False),
        sa.Column("actor_name", sa.Text, nullable=False),
        sa.Column("operation", _TEXT, nullable=False),
        sa.Column("target", _NUMBER),
        sa.Column("about", sa.Text),
        sa.Column("identity", _TEXT, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("idempotency_key", _TEXT),
        sa.Column("change_set", _TEXT),
        sa.Column("etag", _TEXT),
        sa.Column("counts", _JSON, nullable=False),
        sa.Column("revision", _NUMBER, nullable=False),
        sa.Column("digest", _TEXT, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("size", _NUMBER, nullable=False),
        sa.Column("created_at", _TEXT, nullable=False),
        sa.Column("expires_at", _TEXT, nullable=False),
        sa.Column("closed_at", _TEXT),
        sa.Column("closed_by", _JSON),
        sa.Column("closed_because", sa.Text),
        sa.Column("event", _NUMBER),
    )
    op.create_index("proposals_by_state", "proposals", ["state", "expires_at"])
    op.create_index("proposals_by_actor", "proposals", ["actor_type", "actor_id", "state", "id"])
    op.create_index("proposals_by_identity", "proposals", ["identity"])
    op.add_column("events", sa.Column("proposal", _NUMBER))
    op.add_column("events", sa.Column("approved_by", _JSON))
