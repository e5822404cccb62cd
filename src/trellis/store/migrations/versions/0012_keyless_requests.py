"""Counts requests without a key by address and minute, and keeps the size of the request log up to date."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0012"
down_revision = "0010"
effect = Effect(seconds={"requests": (0.5, 0.5)}, writes=False)

_TEXTS = (
    "length(method) + length(path) + 2 * length(coalesce(operation, '')) + 2 * length(address) + length(request_id) "
    "+ length(coalesce(error, ''))"
)


def upgrade() -> None:
    """Make the table, and measure the log as `store.requests.size` does."""
    op.create_table(
        "keyless_requests",
        sa.Column("minute", PLAIN, primary_key=True),
        sa.Column("address", PLAIN, primary_key=True),
        sa.Column("status", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("error", PLAIN, primary_key=True),
        sa.Column("times", NUMBER, nullable=False),
    )
    overhead = 260 if op.get_bind().dialect.name == "sqlite" else 520
    size = f"coalesce(sum({overhead} + {_TEXTS}), 0)"
    op.execute(f"INSERT INTO counters (name, last, total) SELECT 'request log bytes', 0, {size} FROM requests")  # noqa: S608  # no values
