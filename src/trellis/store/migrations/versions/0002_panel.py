"""Adds the panel: administrators, their sessions, attempts to sign in, and one-time links for the first start."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0002"
down_revision = "0001"
effect = Effect(seconds={"requests": (2, 1.6)})


def upgrade() -> None:
    """Make the tables, and the index that the panel's chart of requests is read from."""
    op.create_table(
        "administrators",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("login_key", PLAIN, nullable=False, unique=True),
        sa.Column("digest", PLAIN, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("updated_at", PLAIN, nullable=False),
        sa.Column("disabled_at", PLAIN),
        sa.Column("last_seen_at", PLAIN),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", PLAIN, primary_key=True),
        sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="sessions_admin"), nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("seen_at", PLAIN, nullable=False),
        sa.Column("expires_at", PLAIN, nullable=False),
        sa.Column("confirmed_until", PLAIN),
        sa.Column("address", PLAIN, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
    )
    op.create_index("sessions_by_admin", "sessions", ["admin_id"])
    op.create_table(
        "sign_in_attempts",
        sa.Column("subject", PLAIN, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("at", PLAIN, nullable=False),
        sa.Column("wait_until", PLAIN, nullable=False),
    )
    op.create_index("sign_in_attempts_by_time", "sign_in_attempts", ["at"])
    op.create_table(
        "first_run_links",
        sa.Column("digest", PLAIN, primary_key=True),
        sa.Column("expires_at", PLAIN, nullable=False),
    )
    op.create_index("requests_by_outcome", "requests", ["at", "status"])
