"""Adds alarms, how far each administrator has read them, and invitations of administrators."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0032"
down_revision = "0031"
effect = Effect(blocks=("administrators",), unknown="alarms, which it does not raise, and invitations, which it does not accept")


def upgrade() -> None:
    """Make the tables and the column: nothing that has happened already is an alarm."""
    op.create_table(
        "alarms",
        sa.Column("event", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("name", PLAIN, nullable=False),
        sa.Column("resource", PLAIN, nullable=False),
        sa.Column("resource_id", NUMBER),
        sa.Column("at", PLAIN, nullable=False),
    )
    op.create_index("alarms_by_time", "alarms", ["at"])
    op.add_column("administrators", sa.Column("alarms_read", NUMBER, nullable=False, server_default="0"))
    op.create_table(
        "invitations",
        sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="invitations_admin"), primary_key=True),
        sa.Column("digest", PLAIN, nullable=False, unique=True),
        sa.Column("expires_at", PLAIN, nullable=False),
    )
