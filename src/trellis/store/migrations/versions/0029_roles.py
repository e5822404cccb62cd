"""Administrators have roles; existing administrators may do everything, as before."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
effect = Effect(blocks=("administrators",), unknown="roles of administrators: it lets all of them do everything")

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns: everybody is an owner."""
    op.add_column("administrators", sa.Column("role", _PLAIN, nullable=False, server_default="owner"))
    op.add_column("administrators", sa.Column("kinds", _PLAIN))
