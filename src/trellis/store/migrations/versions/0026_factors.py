"""Adds second factors of administrators, and the secret with which they are checked."""

import secrets

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0026"
down_revision = "0025"
effect = Effect(unknown="second factors: it asks only for passwords")


def upgrade() -> None:
    """Add the tables, and one new key: nobody has a second factor yet."""
    op.create_table(
        "passkeys",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="passkeys_admin"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("credential", PLAIN, nullable=False, unique=True),
        sa.Column("public_key", PLAIN, nullable=False),
        sa.Column("uses", NUMBER, nullable=False),
        sa.Column("challenge", PLAIN),
        sa.Column("is_synced", sa.Boolean, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("used_at", PLAIN),
    )
    op.create_index("passkeys_by_admin", "passkeys", ["admin_id"])
    op.create_table(
        "authenticators",
        sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="authenticators_admin"), primary_key=True),
        sa.Column("salt", PLAIN, nullable=False),
        sa.Column("step", NUMBER, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("used_at", PLAIN),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("digest", PLAIN, primary_key=True),
        sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="recovery_codes_admin"), nullable=False),
    )
    op.create_index("recovery_codes_by_admin", "recovery_codes", ["admin_id"])
    keys = sa.table("signing_keys", sa.column("purpose", PLAIN), sa.column("key", PLAIN))
    op.bulk_insert(keys, [{"purpose": "factors", "key": secrets.token_hex(32)}])
