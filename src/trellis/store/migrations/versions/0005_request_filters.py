"""Makes the request log searchable by operation, address and status, and counts the uses of each key by day."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0005"
down_revision = "0004"
effect = Effect(seconds={"requests": (13, 11)}, blocks=("requests",), writes=False)


def upgrade() -> None:
    """Make an index for each thing that the log is searched by, and count what keys have used as far as it is known."""
    op.create_index("requests_by_operation", "requests", ["operation", "at"])
    op.create_index("requests_by_address", "requests", ["address", "at"])
    op.create_index("requests_by_status", "requests", ["status", "at"])
    op.drop_index("requests_by_time", "requests")  # requests_by_outcome begins with the time too
    op.create_table(
        "key_uses",
        sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("day", PLAIN, primary_key=True),
        sa.Column("operation", PLAIN, primary_key=True),
        sa.Column("status", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("times", NUMBER, nullable=False),
        sa.Column("last_at", PLAIN, nullable=False),
    )
    op.create_index("key_uses_by_day", "key_uses", ["day"])
    op.execute(
        "INSERT INTO key_uses (key_id, day, operation, status, times, last_at) "
        "SELECT key_id, substr(at, 1, 10), coalesce(operation, ''), status, count(*), max(at) "
        "FROM requests WHERE key_id IS NOT NULL GROUP BY 1, 2, 3, 4"
    )
