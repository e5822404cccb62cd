"""The tables of administrators: how they sign in, their filters and alarms, and the keys with which the service signs data."""

import sqlalchemy as sa

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.tables.metadata import METADATA

administrators = sa.Table(
    "administrators",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("login", sa.Text, nullable=False),
    sa.Column("login_key", PLAIN, nullable=False, unique=True),  # the case-folded login
    sa.Column("digest", PLAIN, nullable=False),  # argon2id; "" until a password is chosen, "-" for single sign-on only
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("disabled_at", PLAIN),
    sa.Column("last_seen_at", PLAIN),
    sa.Column("must_change", sa.Boolean, nullable=False, server_default=sa.false()),  # somebody else has chosen the password
    sa.Column("role", PLAIN, nullable=False, server_default="owner"),
    sa.Column("kinds", PLAIN),  # the kinds that the role covers, separated by commas
    sa.Column("alarms_read", NUMBER, nullable=False, server_default="0"),  # the event of the newest alarm that they have read
    sa.Column("zone", PLAIN, nullable=False, server_default=sa.text("''")),  # the time zone they have chosen; "" for the browser's
    sa.Column("shows_utc", sa.Boolean, nullable=False, server_default=sa.false()),  # for now, instead of their time zone
    sa.Column("theme", PLAIN, nullable=False, server_default=sa.text("''")),  # light or dark; "" for the system's
    sa.Column("language", PLAIN, nullable=False, server_default=sa.text("''")),  # of the panel; "" for the browser's
    sa.Column("email", sa.Text),
    sa.Column("mailed_alarms", PLAIN, nullable=False, server_default="*"),  # names of the alarms to mail, separated by commas
    sa.Column("alarms_mailed", NUMBER, nullable=False, server_default="0"),  # the event of the newest alarm processed for mail
)

# Filters of lists that administrators have saved under a name, as query strings.
saved_filters = sa.Table(
    "saved_filters",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("admin_id", NUMBER, nullable=False),  # its administrator; 0 for the terminal
    sa.Column("list", PLAIN, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("shared", sa.Boolean, nullable=False),  # whether other administrators see it
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Index("saved_filters_by_admin", "admin_id"),
)

# One-time links of administrators who have been invited and have not chosen a password yet.
invitations = sa.Table(
    "invitations",
    METADATA,
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="invitations_admin"), primary_key=True),
    sa.Column("digest", PLAIN, nullable=False, unique=True),  # SHA-256 of the link's secret, in hex
    sa.Column("expires_at", PLAIN, nullable=False),
)

# The accounts of administrators at OpenID providers. A subject is never assigned to anybody else (OpenID Connect Core, 5.7).
identities = sa.Table(
    "identities",
    METADATA,
    sa.Column("issuer", PLAIN, primary_key=True),
    sa.Column("subject", PLAIN, primary_key=True),
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="identities_admin"), nullable=False),
    sa.Column("login", sa.Text, nullable=False),  # the name of the account there, only for display
    sa.Column("state", PLAIN),  # of the newest sign-on that was accepted, in base64url
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("used_at", PLAIN),
    sa.Index("identities_by_admin", "admin_id", "issuer", unique=True),
)

# Marks of events that somebody should look at; the events contain the details.
alarms = sa.Table(
    "alarms",
    METADATA,
    sa.Column("event", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("name", PLAIN, nullable=False),
    sa.Column("resource", PLAIN, nullable=False),
    sa.Column("resource_id", NUMBER),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("own", NUMBER),  # the administrator who caused it, and need not be told
    sa.Index("alarms_by_time", "at"),
)

sessions = sa.Table(
    "sessions",
    METADATA,
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the cookie, in hex
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="sessions_admin"), nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("seen_at", PLAIN, nullable=False),
    sa.Column("expires_at", PLAIN, nullable=False),
    sa.Column("confirmed_until", PLAIN),  # until when the identity counts as recently confirmed
    sa.Column("address", PLAIN, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("confirmed_with", PLAIN),  # comma-separated: password, sso, app, passkey, recovery code, mfa
    sa.Column("issuer", PLAIN),  # the provider where it began, for single sign-on
    sa.Index("sessions_by_admin", "admin_id"),
)

# Attempts to sign in: one row for each account, address, or browser that has signed in before.
sign_in_attempts = sa.Table(
    "sign_in_attempts",
    METADATA,
    sa.Column("subject", PLAIN, primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("wait_until", PLAIN, nullable=False),
    sa.Index("sign_in_attempts_by_time", "at"),
)

# Failed sign-ins, counted until their minute (`2026-01-31T09:30`, UTC) is over and an event reports them.
failed_sign_ins = sa.Table(
    "failed_sign_ins",
    METADATA,
    sa.Column("minute", PLAIN, primary_key=True),
    sa.Column("address", PLAIN, primary_key=True),
    sa.Column("admin_id", NUMBER, primary_key=True, autoincrement=False),  # whose login was typed; 0 for an unknown login
    sa.Column("attempts", NUMBER, nullable=False),
)

# One-time links for creating the first administrator.
first_run_links = sa.Table(
    "first_run_links",
    METADATA,
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the link's secret, in hex
    sa.Column("expires_at", PLAIN, nullable=False),
)

# The keys with which the service signs data: 32 random bytes in hex for each purpose.
signing_keys = sa.Table(
    "signing_keys",
    METADATA,
    sa.Column("purpose", PLAIN, primary_key=True),
    sa.Column("key", PLAIN, nullable=False),
)
