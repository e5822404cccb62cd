"""Alarms, and how far each administrator has read them; invitations of administrators."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
effect = Effect(blocks=("administrators",), unknown="alarms, which it does not raise, and invitations, which it does not accept")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables and the column: nothing that has happened already is an alarm."""
    op.create_table(
        "alarms",
        sa.Column("event", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("resource", _TEXT, nullable=False),
        sa.Column("resource_id", _NUMBER),
        sa.Column("at", _TEXT, nullable=False),
    )
    op.create_index("alarms_by_time", "alarms", ["at"])
    op.add_column("administrators", sa.Column("alarms_read", _NUMBER, nullable=False, server_default="0"))
    op.create_table(
        "invitations",
        sa.Column("admin_id", _NUMBER, sa.ForeignKey("administrators.id", name="invitations_admin"), primary_key=True),
        sa.Column("digest", _TEXT, nullable=False, unique=True),
        sa.Column("expires_at", _TEXT, nullable=False),
    )
