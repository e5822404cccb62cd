"""Adds mail addresses of administrators and the alarms that each is mailed, and who caused an alarm."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0033"
down_revision = "0032"
effect = Effect(blocks=("administrators", "alarms"), unknown="mail addresses of administrators, which it does not show")


def upgrade() -> None:
    """Add the columns: nobody has an address yet."""
    op.add_column("alarms", sa.Column("own", NUMBER))
    op.add_column("administrators", sa.Column("email", sa.Text))
    op.add_column("administrators", sa.Column("mailed_alarms", PLAIN, nullable=False, server_default="*"))
    op.add_column("administrators", sa.Column("alarms_mailed", NUMBER, nullable=False, server_default="0"))
