"""The outbox of mail."""

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None
effect = Effect(unknown="mail, which it does not send")

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "mails",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("kind", _TEXT, nullable=False),
        sa.Column("admin_id", _NUMBER, nullable=False),
        sa.Column("recipient", sa.Text),
        sa.Column("first", _NUMBER),
        sa.Column("last", _NUMBER),
        sa.Column("state", _TEXT, nullable=False),
        sa.Column("attempts", _NUMBER, nullable=False),
        sa.Column("due_at", _TEXT, nullable=False),
        sa.Column("created_at", _TEXT, nullable=False),
        sa.Column("attempted_at", _TEXT),
        sa.Column("error", sa.Text),
    )
    op.create_index("mails_by_state", "mails", ["state", "due_at"])
    op.create_index("mails_by_admin", "mails", ["admin_id", "id"])
