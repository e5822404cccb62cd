"""Identities of administrators at an OpenID provider, and the sessions that begin there."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None
effect = Effect(blocks=("sessions",), unknown="single sign-on")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table and the column: there are none yet."""
    op.create_table(
        "identities",
        sa.Column("issuer", _TEXT, primary_key=True),
        sa.Column("subject", _TEXT, primary_key=True),
        sa.Column("admin_id", _NUMBER, sa.ForeignKey("administrators.id", name="identities_admin"), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("state", _TEXT),
        sa.Column("created_at", _TEXT, nullable=False),
        sa.Column("used_at", _TEXT),
    )
    op.create_index("identities_by_admin", "identities", ["admin_id", "issuer"], unique=True)
    op.add_column("sessions", sa.Column("issuer", _TEXT))
