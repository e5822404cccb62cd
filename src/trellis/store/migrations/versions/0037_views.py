"""Adds each administrator's time zone and theme, saved filters, and requests of keys by quarter of an hour."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0037"
down_revision = "0035"
effect = Effect(
    seconds={"key_uses": (12, 18)},
    blocks=("administrators",),
    unknown="time zones and themes of administrators, saved filters, and the requests of keys by quarter of an hour, which it does "
    "not count",
)


def upgrade() -> None:
    """Make the columns and the tables. What is counted by day (UTC) so far stands at noon: the same day in most time zones."""
    op.add_column("administrators", sa.Column("zone", PLAIN, nullable=False, server_default=sa.text("''")))
    op.add_column("administrators", sa.Column("shows_utc", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("administrators", sa.Column("theme", PLAIN, nullable=False, server_default=sa.text("''")))
    op.create_table(
        "saved_filters",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("admin_id", NUMBER, nullable=False),
        sa.Column("list", PLAIN, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("updated_at", PLAIN, nullable=False),
    )
    op.create_index("saved_filters_by_admin", "saved_filters", ["admin_id"])
    op.create_table(
        "key_quarters",
        sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("quarter", PLAIN, primary_key=True),
        sa.Column("digit", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("times", NUMBER, nullable=False),
    )
    op.create_index("key_quarters_by_time", "key_quarters", ["quarter"])
    op.execute(
        "INSERT INTO key_quarters (key_id, quarter, digit, times)"
        " SELECT key_id, day || 'T12:00', status / 100, sum(times) FROM key_uses GROUP BY key_id, day, status / 100"
    )
