"""PostgreSQL keeps no statistics of the kind of a node.

They are wrong for as long as a kind has grown a lot since they were gathered: 'calendars are rare', of ten thousand new ones. Then
any index that begins with the kind looks as good as the primary key, and reading one record reads all of its kind, or their square.
Without statistics PostgreSQL expects some of each kind, and prefers the index that leads to one row.
"""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0017"
down_revision = "0016"
effect = Effect(seconds={"nodes": (0, 1.3)}, blocks=("nodes",))


def upgrade() -> None:
    """Drop those that there are, which only a change of the type does, even to the same one; no row is written."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("nodes", "kind", type_=sa.Text(collation="C"))
        op.execute("ALTER TABLE nodes ALTER COLUMN kind SET STATISTICS 0")
