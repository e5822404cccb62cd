"""The table of proposals."""

import sqlalchemy as sa

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.tables.metadata import METADATA

# Calls that wait for approval, and calls whose approval has been decided.
proposals = sa.Table(
    "proposals",
    METADATA,
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
