"""The panel: administrators, their sessions, attempts to sign in, and one-time links for the first run."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
effect = Effect(seconds={"requests": (2, 1.6)})

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables, and the index that the panel's chart of requests is read from."""
    op.create_table(
        "administrators",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("login_key", _PLAIN, nullable=False, unique=True),
        sa.Column("digest", _PLAIN, nullable=False),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("updated_at", _PLAIN, nullable=False),
        sa.Column("disabled_at", _PLAIN),
        sa.Column("last_seen_at", _PLAIN),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", _PLAIN, primary_key=True),
        sa.Column("admin_id", _NUMBER, sa.ForeignKey("administrators.id", name="sessions_admin"), nullable=False),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("seen_at", _PLAIN, nullable=False),
        sa.Column("expires_at", _PLAIN, nullable=False),
        sa.Column("confirmed_until", _PLAIN),
        sa.Column("address", _PLAIN, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
    )
    op.create_index("sessions_by_admin", "sessions", ["admin_id"])
    op.create_table(
        "sign_in_attempts",
        sa.Column("subject", _PLAIN, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("at", _PLAIN, nullable=False),
        sa.Column("wait_until", _PLAIN, nullable=False),
    )
    op.create_index("sign_in_attempts_by_time", "sign_in_attempts", ["at"])
    op.create_table(
        "first_run_links",
        sa.Column("digest", _PLAIN, primary_key=True),
        sa.Column("expires_at", _PLAIN, nullable=False),
    )
    op.create_index("requests_by_outcome", "requests", ["at", "status"])
