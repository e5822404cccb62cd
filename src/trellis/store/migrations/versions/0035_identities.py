"""Adds accounts of administrators at an OpenID provider, and marks the sessions that began there."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0035"
down_revision = "0034"
effect = Effect(blocks=("sessions",), unknown="single sign-on")


def upgrade() -> None:
    """Make the table and the column: there are none yet."""
    op.create_table(
        "identities",
        sa.Column("issuer", PLAIN, primary_key=True),
        sa.Column("subject", PLAIN, primary_key=True),
        sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="identities_admin"), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("state", PLAIN),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("used_at", PLAIN),
    )
    op.create_index("identities_by_admin", "identities", ["admin_id", "issuer"], unique=True)
    op.add_column("sessions", sa.Column("issuer", PLAIN))
