"""The tables of API keys, events with the snapshots for undo, requests, counts of uses, and proposals."""

import sqlalchemy as sa

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.tables.metadata import declare_table, partial_index

keys = declare_table(
    "api_keys",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("public", PLAIN, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False, server_default=sa.text("''")),  # the person to ask about it
    sa.Column("note", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("digest", PLAIN, nullable=False),  # SHA-256 of the secret, in hex
    sa.Column("old_digest", PLAIN),
    sa.Column("old_until", PLAIN),
    sa.Column("grants", JSON, nullable=False),
    sa.Column("bounds", JSON, nullable=False, server_default=sa.text("'{}'")),  # by operation, for the grants that have bounds
    sa.Column("expires_at", PLAIN),
    sa.Column("addresses", JSON, nullable=False),
    sa.Column("rate_limit", NUMBER),
    sa.Column("per_day", NUMBER),  # uses of all grants together
    sa.Column("log_requests", sa.Boolean, nullable=False),
    sa.Column("dialect", PLAIN, nullable=False, server_default="trellis"),
    sa.Column("preset", PLAIN),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("paused_at", PLAIN),
    sa.Column("paused_because", sa.Text),
    sa.Column("revoked_at", PLAIN),
    sa.Column("revoked_because", sa.Text),
    sa.Column("last_used_at", PLAIN),
)

events = declare_table(
    "events",
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
    sa.Column("proposal", NUMBER),  # the proposal that caused it
    sa.Column("approved_by", JSON),  # the actor who approved that proposal
    sa.Column("traceparent", PLAIN),  # the trace of its request (W3C Trace Context)
    sa.Index("events_by_record", "resource", "resource_id", "seq"),
    sa.Index("events_by_time", "at"),
)
partial_index("events_by_change_set", events.c.change_set, events.c.seq, where="change_set IS NOT NULL")

# Sets of events that belong together: the events of one batch, or the events for which a caller sent the same name.
change_sets = declare_table(
    "change_sets",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("actor_type", PLAIN, nullable=False),
    sa.Column("actor_id", NUMBER, nullable=False),  # 0 for an actor without an id
    sa.Column("name", PLAIN),  # as the caller sent it; null for a batch without one
    sa.Column("at", PLAIN, nullable=False),  # the time of its first event
    sa.Column("operation", PLAIN),  # the operation that began it
)
_owner = (change_sets.c.actor_type, change_sets.c.actor_id, change_sets.c.name)
partial_index("change_sets_by_name", *_owner, unique=True, where="name IS NOT NULL")
partial_index("events_by_undone", events.c.undoes, where="undoes IS NOT NULL")

# The rows that an event deleted or changed, as they were before it, including password hashes. No interface shows them.
snapshots = declare_table(
    "snapshots",
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
    sa.Column("neighbours", JSON),  # the nearest siblings, or the parent it moved to, from which undo finds its position
    sa.Column("external_id", PLAIN),
    sa.Column("managed_by", PLAIN),
    sa.Index("snapshots_by_record", "kind", "id", "seq"),
)

# The responses to creates with an Idempotency-Key, kept for a day.
idempotent_responses = declare_table(
    "idempotent_responses",
    sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("token", PLAIN, primary_key=True),
    sa.Column("fingerprint", PLAIN, nullable=False),
    sa.Column("response", sa.Text, nullable=False),  # JSON, as text: JSONB would not preserve the order of its members
    sa.Column("at", PLAIN, nullable=False),
    sa.Index("idempotent_responses_by_time", "at"),
)

# What many requests have in common, stored once. A shape is deleted with the last request that has it.
request_shapes = declare_table(
    "request_shapes",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("key_id", NUMBER, nullable=False),  # 0 if it is not known
    sa.Column("operation", PLAIN, nullable=False),  # "" for none
    sa.Column("method", PLAIN, nullable=False),
    sa.Column("address", PLAIN, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("error", PLAIN, nullable=False),  # "" for none
    sa.Index("request_shapes_by_key", "key_id", "operation", "method", "address", "status", "error", unique=True),
    sa.Index("request_shapes_by_operation", "operation"),
    sa.Index("request_shapes_by_address", "address"),
    sa.Index("request_shapes_by_status", "status"),
)

requests = declare_table(
    "logged_requests",  # `requests` is a view that joins both tables, for the release before the split
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("at", PLAIN, nullable=False),
    sa.Column("shape", NUMBER, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("duration", sa.Integer, nullable=False),  # microseconds
    sa.Column("request_id", PLAIN, nullable=False),
    sa.Index("logged_requests_by_time", "at"),
    sa.Index("logged_requests_by_shape", "shape", "at"),
    sa.Index("logged_requests_by_request_id", "request_id"),
)

# How often a key ran an operation on a day (UTC), by status. These counts are kept longer than the requests themselves.
key_uses = declare_table(
    "key_uses",
    sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("day", PLAIN, primary_key=True),
    sa.Column("operation", PLAIN, primary_key=True),  # "" for a path without an operation
    sa.Column("status", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("times", NUMBER, nullable=False),
    sa.Column("last_at", PLAIN, nullable=False),
    sa.Index("key_uses_by_day", "day"),
)

# How many requests a key made in a quarter of an hour (`2026-01-31T09:15`, UTC), by first digit of the status. From quarters, the
# days of any time zone can be added up, since all offsets from UTC are multiples of a quarter of an hour.
key_quarters = declare_table(
    "key_quarters",
    sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("quarter", PLAIN, primary_key=True),
    sa.Column("digit", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("times", NUMBER, nullable=False),
    sa.Index("key_quarters_by_time", "quarter"),
)

# How often a key used a grant on a day (UTC), for grants with a limit per day.
grant_uses = declare_table(
    "grant_uses",
    sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("operation", PLAIN, primary_key=True),
    sa.Column("day", PLAIN, primary_key=True),
    sa.Column("times", NUMBER, nullable=False),
)

# The number of requests in an hour (`2026-01-31T09`, UTC), by first digit of the status.
request_hours = declare_table(
    "request_hours",
    sa.Column("hour", PLAIN, primary_key=True),
    sa.Column("digit", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("times", NUMBER, nullable=False),
)

# How many requests without a valid key an address sent in a minute (`2026-01-31T09:30`, UTC), by status and error.
keyless_requests = declare_table(
    "keyless_requests",
    sa.Column("minute", PLAIN, primary_key=True),
    sa.Column("address", PLAIN, primary_key=True),  # an address, a /64 network of IPv6, or "others"
    sa.Column("status", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("error", PLAIN, primary_key=True),  # an errorCode; "" for none
    sa.Column("times", NUMBER, nullable=False),
)

# Calls that wait for approval, and calls whose approval has been decided.
proposals = declare_table(
    "proposals",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("handle", PLAIN, nullable=False),  # an id that nobody can guess
    sa.Column("state", PLAIN, nullable=False),  # open, approved, rejected, withdrawn or expired
    sa.Column("actor_type", PLAIN, nullable=False),  # who proposed it
    sa.Column("actor_id", NUMBER, nullable=False),  # 0 for an actor without an id
    sa.Column("actor_name", sa.Text, nullable=False),
    sa.Column("operation", PLAIN, nullable=False),
    sa.Column("target", NUMBER),
    sa.Column("about", sa.Text),  # the name of the record that the call would change
    sa.Column("identity", PLAIN, nullable=False),  # a digest of the call: equal calls have equal digests
    sa.Column("reason", sa.Text),
    sa.Column("idempotency_key", PLAIN),
    sa.Column("change_set", sa.Text),  # the name that the caller sent
    sa.Column("etag", PLAIN),  # of that record
    sa.Column("counts", JSON, nullable=False),
    sa.Column("revision", NUMBER, nullable=False),  # the newest event when it was proposed
    sa.Column("digest", PLAIN, nullable=False),  # of everything that the call would have changed then
    sa.Column("content", sa.Text, nullable=False),  # JSON, as text: JSONB would not preserve the order of its members
    sa.Column("size", NUMBER, nullable=False),  # of the content, in bytes
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("expires_at", PLAIN, nullable=False),
    sa.Column("closed_at", PLAIN),
    sa.Column("closed_by", JSON),
    sa.Column("closed_because", sa.Text),
    sa.Column("event", NUMBER),  # the last event that the call recorded
    sa.Index("proposals_by_state", "state", "expires_at"),
    sa.Index("proposals_by_actor", "actor_type", "actor_id", "state", "expires_at", "size"),
    sa.Index("proposals_by_operation", "operation", "state", "expires_at"),
    sa.Index("proposals_by_closing", "closed_at"),
    sa.Index("proposals_by_identity", "identity"),
)
