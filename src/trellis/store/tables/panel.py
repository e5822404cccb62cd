"""The tables of administrators: how they sign in, their second factors, filters, alarms and mail.

One more contains the keys with which the service signs data.
"""

import sqlalchemy as sa

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.tables.metadata import declare_table

administrators = declare_table(
    "administrators",
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
saved_filters = declare_table(
    "saved_filters",
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
invitations = declare_table(
    "invitations",
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="invitations_admin"), primary_key=True),
    sa.Column("digest", PLAIN, nullable=False, unique=True),  # SHA-256 of the link's secret, in hex
    sa.Column("expires_at", PLAIN, nullable=False),
)

# The accounts of administrators at OpenID providers. A subject is never assigned to anybody else (OpenID Connect Core, 5.7).
identities = declare_table(
    "identities",
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
alarms = declare_table(
    "alarms",
    sa.Column("event", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("name", PLAIN, nullable=False),
    sa.Column("resource", PLAIN, nullable=False),
    sa.Column("resource_id", NUMBER),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("own", NUMBER),  # the administrator who caused it, and need not be told
    sa.Index("alarms_by_time", "at"),
)

sessions = declare_table(
    "sessions",
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
sign_in_attempts = declare_table(
    "sign_in_attempts",
    sa.Column("subject", PLAIN, primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("wait_until", PLAIN, nullable=False),
    sa.Index("sign_in_attempts_by_time", "at"),
)

# Failed sign-ins, counted until their minute (`2026-01-31T09:30`, UTC) is over and an event reports them.
failed_sign_ins = declare_table(
    "failed_sign_ins",
    sa.Column("minute", PLAIN, primary_key=True),
    sa.Column("address", PLAIN, primary_key=True),
    sa.Column("admin_id", NUMBER, primary_key=True, autoincrement=False),  # whose login was typed; 0 for an unknown login
    sa.Column("attempts", NUMBER, nullable=False),
)

# One-time links for creating the first administrator.
first_run_links = declare_table(
    "first_run_links",
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the link's secret, in hex
    sa.Column("expires_at", PLAIN, nullable=False),
)

# The keys with which the service signs data: 32 random bytes in hex for each purpose.
signing_keys = declare_table(
    "signing_keys",
    sa.Column("purpose", PLAIN, primary_key=True),
    sa.Column("key", PLAIN, nullable=False),
)

# --- second factors --------------------------------------------------------------------------------------------------

passkeys = declare_table(
    "passkeys",
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

authenticators = declare_table(
    "authenticators",
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="authenticators_admin"), primary_key=True),
    sa.Column("salt", PLAIN, nullable=False),  # the secret is derived from it and a signing key
    sa.Column("step", NUMBER, nullable=False),  # the time step of the newest code that was accepted
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("used_at", PLAIN),
)

recovery_codes = declare_table(
    "recovery_codes",
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the administrator and a code of 118 random bits, in hex
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="recovery_codes_admin"), nullable=False),
    sa.Index("recovery_codes_by_admin", "admin_id"),
)

# --- mail -----------------------------------------------------------------------------------------------------------

# The text of a mail is written only when it is sent, so that a link is not valid before, and nobody can read one in this table.
mails = declare_table(
    "mails",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("kind", PLAIN, nullable=False),  # alarms, invitation, changed-address or fewer-alarms
    sa.Column("admin_id", NUMBER, nullable=False),  # the administrator to whom it is sent
    sa.Column("recipient", sa.Text),  # its address; null for the address of that administrator
    sa.Column("first", NUMBER),  # it reports the alarms of the events after this one
    sa.Column("last", NUMBER),  # and up to this one
    sa.Column("state", PLAIN, nullable=False),  # waiting, sent or failed
    sa.Column("attempts", NUMBER, nullable=False),
    sa.Column("due_at", PLAIN, nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("attempted_at", PLAIN),
    sa.Column("error", sa.Text),  # what went wrong at the last attempt
    sa.Index("mails_by_state", "state", "due_at"),
    sa.Index("mails_by_admin", "admin_id", "id"),
)
