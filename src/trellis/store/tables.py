"""The tables, in SQLAlchemy Core. The migrations create them; a test proves that both agree."""

import sqlalchemy as sa

from trellis.store.column_types import JSON, NUMBER, PLAIN

METADATA = sa.MetaData()

nodes = sa.Table(
    "nodes",
    METADATA,
    sa.Column("kind", PLAIN, primary_key=True),
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("parent_id", NUMBER),
    sa.Column("block", NUMBER, nullable=False, server_default=sa.text("0")),  # see `sibling_blocks`; 0: there are no blocks
    sa.Column("block_offset", NUMBER, nullable=False),  # in its block: siblings.POSITION is the position among all siblings
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("name_key", PLAIN, nullable=False),  # the case-folded name, for sorting and searching
    sa.Column("fields", JSON, nullable=False),
    sa.Column("permissions", JSON, nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("external_id", PLAIN),  # what another system calls it; unique in its kind
    sa.Column("managed_by", PLAIN),  # the name of the document that it was made or changed by last, and that has it
    sa.ForeignKeyConstraint(["kind", "parent_id"], ["nodes.kind", "nodes.id"], name="nodes_parent"),
    sa.Index("nodes_children", "kind", "parent_id", "block", "block_offset"),
    sa.Index("nodes_by_name", "kind", "name_key", "id"),
    sa.Index("nodes_by_created", "kind", "created_at", "id"),
    sa.Index("nodes_by_updated", "kind", "updated_at", "id"),
)
_has_external_id = nodes.c.external_id.is_not(None)
sa.Index(
    "nodes_by_external_id",
    nodes.c.kind,
    nodes.c.external_id,
    unique=True,
    sqlite_where=_has_external_id,
    postgresql_where=_has_external_id,
)
_in_block_0 = nodes.c.block == sa.text("0")
sa.Index("nodes_by_position", nodes.c.kind, nodes.c.block_offset, nodes.c.id, sqlite_where=_in_block_0)

# The blocks of a counted B-tree for each parent with more than 64 children: see `trellis.store.siblings`.
sibling_blocks = sa.Table(
    "sibling_blocks",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("kind", PLAIN, nullable=False),
    sa.Column("parent_id", NUMBER, nullable=False),  # the node whose children these are; 0 is the top level
    sa.Column("level", NUMBER, nullable=False),  # 0 contains rows of nodes, 1 blocks of level 0, and so on
    sa.Column("parent_block", NUMBER, nullable=False),  # the block that contains this one; 0 for the root
    sa.Column("start", NUMBER, nullable=False),  # how many siblings precede it in the parent block
    sa.Column("size", NUMBER, nullable=False),  # how many siblings it contains, at any depth
    sa.Index("sibling_blocks_by_parent_block", "parent_block"),
)
_root = sibling_blocks.c.parent_block == sa.text("0")
sa.Index("sibling_blocks_roots", sibling_blocks.c.kind, sibling_blocks.c.parent_id, unique=True, sqlite_where=_root)

# One row per sequence (a kind, or `events`): the last number assigned, and the current number of rows.
counters = sa.Table(
    "counters",
    METADATA,
    sa.Column("name", PLAIN, primary_key=True),
    sa.Column("last", NUMBER, nullable=False),
    sa.Column("total", NUMBER, nullable=False),
)

# --- derived from the nodes, so that no list has to read all of them ------------------------------------------------

# How many ids of a range belonged to nodes that were deleted: see `nodes.deleted_ids`. A range without any has no row.
deleted_id_counts = sa.Table(
    "deleted_id_counts",
    METADATA,
    sa.Column("kind", PLAIN, primary_key=True),
    sa.Column("shift", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("prefix", NUMBER, primary_key=True, autoincrement=False),  # the range is of the ids for which id >> shift = prefix
    sa.Column("deleted", NUMBER, nullable=False),
)

# The change journal: what each of the latest inserts, updates and deletes of nodes changed. Written by triggers on `nodes`.
# From `parent_id` on: the row as it was before; all null for an insert.
node_changes = sa.Table(
    "node_changes",
    METADATA,
    sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("kind", PLAIN, nullable=False),
    sa.Column("id", NUMBER, nullable=False),
    sa.Column("parent_id", NUMBER),
    sa.Column("name_key", PLAIN),
    sa.Column("fields", JSON),
    sa.Column("created_at", PLAIN),
    sa.Column("updated_at", PLAIN),
)

# The names in the search index, which is updated shortly after the nodes: see `lists.search`.
search_names = sa.Table(
    "search_names",
    METADATA,
    sa.Column("document_id", NUMBER, primary_key=True, autoincrement=True),  # the rowid in SQLite's full-text index
    sa.Column("kind", PLAIN, nullable=False),
    sa.Column("id", NUMBER, nullable=False),
    sa.Column("name_key", PLAIN, nullable=False),
    sa.Index("search_names_by_node", "kind", "id", unique=True),
)

# --- keys, events and requests ------------------------------------------------------------------------------------

keys = sa.Table(
    "api_keys",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("public", PLAIN, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", PLAIN, nullable=False),  # SHA-256 of the secret, in hex
    sa.Column("old_digest", PLAIN),
    sa.Column("old_until", PLAIN),
    sa.Column("grants", JSON, nullable=False),
    sa.Column("expires_at", PLAIN),
    sa.Column("addresses", JSON, nullable=False),
    sa.Column("rate_limit", NUMBER),
    sa.Column("log_requests", sa.Boolean, nullable=False),
    sa.Column("dialect", PLAIN, nullable=False, server_default="trellis"),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("revoked_at", PLAIN),
    sa.Column("revoked_because", sa.Text),
    sa.Column("last_used_at", PLAIN),
)

events = sa.Table(
    "events",
    METADATA,
    sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("operation", PLAIN, nullable=False),
    sa.Column("actor", JSON, nullable=False),
    sa.Column("request_id", PLAIN),
    sa.Column("reason", sa.Text),
    sa.Column("resource", PLAIN, nullable=False),
    sa.Column("resource_id", NUMBER),
    sa.Column("before", JSON),
    sa.Column("after", JSON),
    sa.Column("changed", JSON, nullable=False),  # the names of the members that differ, write-only ones included
    sa.Column("idempotency_key", PLAIN),
    sa.Column("touched", JSON, nullable=False),  # what else was deleted, moved or changed: [{resource, id}, …]
    sa.Column("undoes", NUMBER),  # the event that this one undoes
    sa.Column("change_set", NUMBER),
    sa.Index("events_by_record", "resource", "resource_id", "seq"),
    sa.Index("events_by_time", "at"),
)
_in_change_set = events.c.change_set.is_not(None)
sa.Index("events_by_change_set", events.c.change_set, events.c.seq, sqlite_where=_in_change_set, postgresql_where=_in_change_set)

# Events that belong together: those of one batch, and those whose caller sent the same name.
change_sets = sa.Table(
    "change_sets",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("actor_type", PLAIN, nullable=False),
    sa.Column("actor_id", NUMBER, nullable=False),  # 0 for an actor without an id
    sa.Column("name", PLAIN),  # as the caller sent it; null for a batch without one
    sa.Column("at", PLAIN, nullable=False),  # of its first event
    sa.Column("operation", PLAIN),  # the one that began it
)
_named = change_sets.c.name.is_not(None)
sa.Index(
    "change_sets_by_name",
    change_sets.c.actor_type,
    change_sets.c.actor_id,
    change_sets.c.name,
    unique=True,
    sqlite_where=_named,
    postgresql_where=_named,
)
_undoing = events.c.undoes.is_not(None)
sa.Index("events_by_undone", events.c.undoes, sqlite_where=_undoing)

# The rows that an event deleted or changed, as they were before it, including password hashes. No interface shows them.
snapshots = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("kind", PLAIN, primary_key=True),
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("change", PLAIN, nullable=False),  # what the event did to the row: deleted, moved or changed
    sa.Column("parent_id", NUMBER),
    sa.Column("position", NUMBER, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("name_key", PLAIN, nullable=False),
    sa.Column("fields", JSON, nullable=False),
    sa.Column("permissions", JSON, nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("neighbours", JSON),  # the nearest siblings, or the parent it moved to: what undo finds its position by
    sa.Column("external_id", PLAIN),
    sa.Column("managed_by", PLAIN),
    sa.Index("snapshots_by_record", "kind", "id", "seq"),
)

# The responses to creates with an Idempotency-Key, kept for a day.
idempotent_responses = sa.Table(
    "idempotent_responses",
    METADATA,
    sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("token", PLAIN, primary_key=True),
    sa.Column("fingerprint", PLAIN, nullable=False),
    sa.Column("response", sa.Text, nullable=False),  # JSON, as text: JSONB would not preserve the order of its members
    sa.Column("at", PLAIN, nullable=False),
    sa.Index("idempotent_responses_by_time", "at"),
)

requests = sa.Table(
    "requests",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("method", PLAIN, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("operation", PLAIN),
    sa.Column("key_id", NUMBER),
    sa.Column("address", PLAIN, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("duration", sa.Integer, nullable=False),  # microseconds
    sa.Column("request_id", PLAIN, nullable=False),
    sa.Column("error", PLAIN),
    sa.Index("requests_by_key", "key_id", "at"),
    sa.Index("requests_by_operation", "operation", "at"),
    sa.Index("requests_by_address", "address", "at"),
    sa.Index("requests_by_status", "status", "at"),
    sa.Index("requests_by_outcome", "at", "status"),
)

# How often a key ran an operation on a day (UTC), by status: kept for longer than the requests themselves.
key_uses = sa.Table(
    "key_uses",
    METADATA,
    sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("day", PLAIN, primary_key=True),
    sa.Column("operation", PLAIN, primary_key=True),  # "" for a path without an operation
    sa.Column("status", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("times", NUMBER, nullable=False),
    sa.Column("last_at", PLAIN, nullable=False),
    sa.Index("key_uses_by_day", "day"),
)

# The number of requests in an hour (`2026-01-31T09`, UTC), by first digit of the status.
request_hours = sa.Table(
    "request_hours",
    METADATA,
    sa.Column("hour", PLAIN, primary_key=True),
    sa.Column("digit", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("times", NUMBER, nullable=False),
)

# How many requests without a good key an address sent in a minute (`2026-01-31T09:30`, UTC), by their outcome. The request log
# has a few of them as examples.
keyless_requests = sa.Table(
    "keyless_requests",
    METADATA,
    sa.Column("minute", PLAIN, primary_key=True),
    sa.Column("address", PLAIN, primary_key=True),  # an address, a /64 network of IPv6, or "others"
    sa.Column("status", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("error", PLAIN, primary_key=True),  # an errorCode; "" for none
    sa.Column("times", NUMBER, nullable=False),
)

# --- the panel ----------------------------------------------------------------------------------------------------

administrators = sa.Table(
    "administrators",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("login", sa.Text, nullable=False),
    sa.Column("login_key", PLAIN, nullable=False, unique=True),  # the case-folded login
    sa.Column("digest", PLAIN, nullable=False),  # argon2id
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("disabled_at", PLAIN),
    sa.Column("last_seen_at", PLAIN),
    sa.Column("must_change", sa.Boolean, nullable=False, server_default=sa.false()),  # somebody else has chosen the password
)

sessions = sa.Table(
    "sessions",
    METADATA,
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the cookie, in hex
    sa.Column("admin_id", NUMBER, sa.ForeignKey("administrators.id", name="sessions_admin"), nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("seen_at", PLAIN, nullable=False),
    sa.Column("expires_at", PLAIN, nullable=False),
    sa.Column("confirmed_until", PLAIN),  # until when the password counts as recently entered
    sa.Column("address", PLAIN, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Index("sessions_by_admin", "admin_id"),
)

# Who tried to sign in: one row for an account, an address, or a browser that has signed in before.
sign_in_attempts = sa.Table(
    "sign_in_attempts",
    METADATA,
    sa.Column("subject", PLAIN, primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("wait_until", PLAIN, nullable=False),
    sa.Index("sign_in_attempts_by_time", "at"),
)

# Sign-ins that failed, counted until their minute (`2026-01-31T09:30`, UTC) is over and an event tells them.
failed_sign_ins = sa.Table(
    "failed_sign_ins",
    METADATA,
    sa.Column("minute", PLAIN, primary_key=True),
    sa.Column("address", PLAIN, primary_key=True),
    sa.Column("admin_id", NUMBER, primary_key=True, autoincrement=False),  # whose login was typed; 0 for nobody's
    sa.Column("attempts", NUMBER, nullable=False),
)

# One-time links to create the first administrator.
first_run_links = sa.Table(
    "first_run_links",
    METADATA,
    sa.Column("digest", PLAIN, primary_key=True),  # SHA-256 of the link's secret, in hex
    sa.Column("expires_at", PLAIN, nullable=False),
)

# What the service signs with: 32 random bytes in hex for each purpose.
signing_keys = sa.Table(
    "signing_keys",
    METADATA,
    sa.Column("purpose", PLAIN, primary_key=True),
    sa.Column("key", PLAIN, nullable=False),
)

webhooks = sa.Table(
    "webhooks",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", JSON, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("secret", PLAIN, nullable=False),  # see core/webhooks/secret.py
    sa.Column("old_secret", PLAIN),
    sa.Column("old_until", PLAIN),
    sa.Column("disabled_at", PLAIN),
    sa.Column("disabled_because", sa.Text),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("cursor", NUMBER, nullable=False),  # the last event that was processed for the outbox
    # Written by the worker that has leased the endpoint, as bookkeeping:
    sa.Column("owner", PLAIN),  # the worker
    sa.Column("heartbeat", NUMBER, nullable=False),  # increases while the worker lives
    sa.Column("failures", NUMBER, nullable=False),  # in a row
    sa.Column("failing_since", PLAIN),
    sa.Column("attempted_at", PLAIN),
    sa.Column("paused_until", PLAIN),
    sa.Column("maker", JSON),  # the actor who made it, or last changed where it sends and what
)

# The outbox and its log: one row for each event and endpoint that subscribes to it.
deliveries = sa.Table(
    "webhook_deliveries",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("webhook_id", NUMBER, nullable=False),
    sa.Column("seq", NUMBER),  # the event; none for a test
    sa.Column("message", PLAIN, nullable=False),  # the webhook-id
    sa.Column("type", PLAIN, nullable=False),
    sa.Column("state", PLAIN, nullable=False),  # waiting, delivered or failed
    sa.Column("step", NUMBER, nullable=False),  # attempts of the schedule that were made
    sa.Column("early_attempts", NUMBER, nullable=False),  # attempts made before they were due
    sa.Column("due_at", PLAIN),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("attempted_at", PLAIN),
    sa.Index("webhook_deliveries_waiting", "state", "webhook_id", "seq"),
    sa.Index("webhook_deliveries_by_webhook", "webhook_id", "id"),
    sa.Index("webhook_deliveries_by_time", "created_at"),
)

attempts = sa.Table(
    "webhook_attempts",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("delivery_id", NUMBER, nullable=False),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("duration", NUMBER, nullable=False),  # milliseconds
    sa.Column("status", NUMBER),
    sa.Column("error", sa.Text),
    sa.Column("answer", sa.Text),
    sa.Index("webhook_attempts_by_delivery", "delivery_id"),
)
