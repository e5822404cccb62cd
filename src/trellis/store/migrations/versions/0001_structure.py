"""The tables of the first release, and the three groups that every community has."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from trellis.store.migrations.effect import Effect

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
effect = Effect()

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    nodes = op.create_table(
        "nodes",
        sa.Column("kind", _PLAIN, primary_key=True),
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("parent_id", _NUMBER),
        sa.Column("position", _NUMBER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", _PLAIN, nullable=False),
        sa.Column("fields", _JSON, nullable=False),
        sa.Column("permissions", _JSON, nullable=False),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("updated_at", _PLAIN, nullable=False),
        sa.ForeignKeyConstraint(["kind", "parent_id"], ["nodes.kind", "nodes.id"], name="nodes_parent"),
    )
    op.create_index("nodes_children", "nodes", ["kind", "parent_id", "position"])
    op.create_index("nodes_by_name", "nodes", ["kind", "name_key", "id"])
    op.create_index("nodes_by_position", "nodes", ["kind", "position", "id"])
    op.create_index("nodes_by_created", "nodes", ["kind", "created_at", "id"])
    op.create_index("nodes_by_updated", "nodes", ["kind", "updated_at", "id"])
    counters = op.create_table(
        "counters",
        sa.Column("name", _PLAIN, primary_key=True),
        sa.Column("last", _NUMBER, nullable=False),
        sa.Column("total", _NUMBER, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("public", _PLAIN, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", _PLAIN, nullable=False),
        sa.Column("old_digest", _PLAIN),
        sa.Column("old_until", _PLAIN),
        sa.Column("grants", _JSON, nullable=False),
        sa.Column("expires_at", _PLAIN),
        sa.Column("addresses", _JSON, nullable=False),
        sa.Column("rate_limit", _NUMBER),
        sa.Column("log_requests", sa.Boolean, nullable=False),
        sa.Column("created_at", _PLAIN, nullable=False),
        sa.Column("updated_at", _PLAIN, nullable=False),
        sa.Column("revoked_at", _PLAIN),
        sa.Column("revoked_because", sa.Text),
        sa.Column("last_used_at", _PLAIN),
    )
    op.create_table(
        "events",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", _PLAIN, nullable=False),
        sa.Column("operation", _PLAIN, nullable=False),
        sa.Column("actor", _JSON, nullable=False),
        sa.Column("request_id", _PLAIN),
        sa.Column("reason", sa.Text),
        sa.Column("resource", _PLAIN, nullable=False),
        sa.Column("resource_id", _NUMBER),
        sa.Column("before", _JSON),
        sa.Column("after", _JSON),
        sa.Column("changed", _JSON, nullable=False),
        sa.Column("touched", _JSON, nullable=False),
    )
    op.create_index("events_by_record", "events", ["resource", "resource_id", "seq"])
    op.create_index("events_by_time", "events", ["at"])
    op.create_table(
        "idempotent_answers",
        sa.Column("key_id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("token", _PLAIN, primary_key=True),
        sa.Column("fingerprint", _PLAIN, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at", _PLAIN, nullable=False),
    )
    op.create_index("idempotent_answers_by_time", "idempotent_answers", ["at"])
    op.create_table(
        "requests",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", _PLAIN, nullable=False),
        sa.Column("method", _PLAIN, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("operation", _PLAIN),
        sa.Column("key_id", _NUMBER),
        sa.Column("address", _PLAIN, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("duration", sa.Integer, nullable=False),
        sa.Column("request_id", _PLAIN, nullable=False),
        sa.Column("error", _PLAIN),
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
