"""Removes PostgreSQL's statistics on the kind of nodes, which led to slow queries.

The statistics are out of date after a kind has grown much: they say that calendars are rare when there are ten thousand new ones.
PostgreSQL then takes any index that begins with the kind to be as good as the primary key, and reads all records of the kind in
order to find one. Without statistics, it prefers the index that leads to one row.
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
