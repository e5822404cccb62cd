"""Creates the tables of the first release, and the three built-in groups."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0001"
down_revision = None
effect = Effect()


def upgrade() -> None:
    """Make the tables."""
    nodes = op.create_table(
        "nodes",
        sa.Column("kind", PLAIN, primary_key=True),
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("parent_id", NUMBER),
        sa.Column("position", NUMBER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", PLAIN, nullable=False),
        sa.Column("fields", JSON, nullable=False),
        sa.Column("permissions", JSON, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("updated_at", PLAIN, nullable=False),
        sa.ForeignKeyConstraint(["kind", "parent_id"], ["nodes.kind", "nodes.id"], name="nodes_parent"),
    )
    op.create_index("nodes_children", "nodes", ["kind", "parent_id", "position"])
    op.create_index("nodes_by_name", "nodes", ["kind", "name_key", "id"])
    op.create_index("nodes_by_position", "nodes", ["kind", "position", "id"])
    op.create_index("nodes_by_created", "nodes", ["kind", "created_at", "id"])
    op.create_index("nodes_by_updated", "nodes", ["kind", "updated_at", "id"])
    counters = op.create_table(
        "counters",
        sa.Column("name", PLAIN, primary_key=True),
        sa.Column("last", NUMBER, nullable=False),
        sa.Column("total", NUMBER, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("public", PLAIN, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", PLAIN, nullable=False),
        sa.Column("old_digest", PLAIN),
        sa.Column("old_until", PLAIN),
        sa.Column("grants", JSON, nullable=False),
        sa.Column("expires_at", PLAIN),
        sa.Column("addresses", JSON, nullable=False),
        sa.Column("rate_limit", NUMBER),
        sa.Column("log_requests", sa.Boolean, nullable=False),
        sa.Column("created_at", PLAIN, nullable=False),
        sa.Column("updated_at", PLAIN, nullable=False),
        sa.Column("revoked_at", PLAIN),
        sa.Column("revoked_because", sa.Text),
        sa.Column("last_used_at", PLAIN),
    )
    op.create_table(
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
        sa.Column("changed", JSON, nullable=False),
        sa.Column("touched", JSON, nullable=False),
    )
    op.create_index("events_by_record", "events", ["resource", "resource_id", "seq"])
    op.create_index("events_by_time", "events", ["at"])
    op.create_table(
        "idempotent_answers",
        sa.Column("key_id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("token", PLAIN, primary_key=True),
        sa.Column("fingerprint", PLAIN, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at", PLAIN, nullable=False),
    )
    op.create_index("idempotent_answers_by_time", "idempotent_answers", ["at"])
    op.create_table(
        "requests",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", PLAIN, nullable=False),
        sa.Column("method", PLAIN, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("operation", PLAIN),
        sa.Column("key_id", NUMBER),
        sa.Column("address", PLAIN, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("duration", sa.Integer, nullable=False),
        sa.Column("request_id", PLAIN, nullable=False),
        sa.Column("error", PLAIN),
    )
    op.create_index("requests_by_time", "requests", ["at"])
    op.create_index("requests_by_key", "requests", ["key_id", "at"])
    _seed(nodes, counters)


def _seed(nodes: sa.Table, counters: sa.Table) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    built_in = ((2, "Guests"), (3, "Members"), (4, "Administrators"))
    op.bulk_insert(
        nodes,
        [
            {
                "kind": "groups",
                "id": number,
                "parent_id": None,
                "position": place,
                "name": name,
                "name_key": name.casefold(),
                "fields": {"prefix": "", "suffix": "", "builtIn": True},
                "permissions": {},
                "created_at": now,
                "updated_at": now,
            }
            for place, (number, name) in enumerate(built_in)
        ],
    )
    op.bulk_insert(counters, [{"name": "groups", "last": 4, "total": 3}])
