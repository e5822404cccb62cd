"""The second factors of administrators: passkeys, authenticator apps and recovery codes."""

import sqlalchemy as sa

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.tables.metadata import METADATA

passkeys = sa.Table(
    "passkeys",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="passkeys_admin"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("credential", PLAIN, nullable=False, unique=True),  # the credential id, in base64url
    sa.Column("public_key", PLAIN, nullable=False),  # COSE, in base64url
    sa.Column("uses", NUMBER, nullable=False),  # as the device counts them; 0 if it does not
    sa.Column("challenge", PLAIN),  # the newest one that was accepted, in base64url
    sa.Column("is_synced", sa.Boolean, nullable=False),  # stored in an account, and so available on several devices
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("used_at", PLAIN),
    sa.Index("passkeys_by_admin", "admin_id"),
)

authenticators = sa.Table(
    "authenticators",
    METADATA,
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="authenticators_admin"), primary_key=True),
    sa.Column("salt", PLAIN, nullable=False),  # the secret is derived from it and a signing key
    sa.Column("step", NUMBER, nullable=False),  # the time step of the newest code that was accepted
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("used_at", PLAIN),
)

recovery_codes = sa.Table(
    "recovery_codes",
    METADATA,
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the administrator and a code of 118 random bits, in hex
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="recovery_codes_admin"), nullable=False),
    sa.Index("recovery_codes_by_admin", "admin_id"),
)
