"""Speeds up lists: counts of deleted ids, a journal of changes, a search index, requests counted by hour."""

from contextlib import suppress
from typing import Final

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0007"
down_revision = "0006"
effect = Effect(seconds={"nodes": (10, 40), "requests": (0.7, 0.7)}, writes=False)

_LEVELS: Final = (8, 16)

_OLD = "kind, id, parent_id, name_key, fields, created_at, updated_at"
_WATCHED = "parent_id, name_key, fields, created_at, updated_at"


def _sqlite_trigger(name: str, act: str, columns: str, values: str) -> str:
    return f"CREATE TRIGGER {name} AFTER {act} ON nodes BEGIN INSERT INTO node_changes ({columns}) VALUES ({values}); END"  # noqa: S608  # names of columns


_OLD_VALUES = ", ".join(f"old.{name}" for name in _OLD.split(", "))
_SQLITE = (
    _sqlite_trigger("nodes_made", "INSERT", "kind, id", "new.kind, new.id"),
    _sqlite_trigger("nodes_changed", f"UPDATE OF {_WATCHED}", _OLD, _OLD_VALUES),
    _sqlite_trigger("nodes_gone", "DELETE", _OLD, _OLD_VALUES),
    "CREATE INDEX nodes_by_type ON nodes (kind, CASE WHEN json_valid(fields) THEN json_extract(fields, '$.type') END, id)",
)
_SQLITE_SEARCH = (
    "CREATE VIRTUAL TABLE search_index USING fts5("
    "name_key, content='node_names', content_rowid='doc', tokenize='trigram case_sensitive 1', detail=none, columnsize=0)"
)
_POSTGRESQL = (
    """CREATE FUNCTION trellis_note_made() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO node_changes (kind, id) VALUES (NEW.kind, NEW.id); RETURN NULL; END $$""",
    f"""CREATE FUNCTION trellis_note_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO node_changes ({_OLD})
        VALUES (OLD.kind, OLD.id, OLD.parent_id, OLD.name_key, OLD.fields, OLD.created_at, OLD.updated_at);
        RETURN NULL;
    END $$""",  # noqa: S608  # names of columns
    "CREATE TRIGGER nodes_made AFTER INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION trellis_note_made()",
    """CREATE TRIGGER nodes_changed AFTER UPDATE OF parent_id, name_key, fields, created_at, updated_at ON nodes
    FOR EACH ROW EXECUTE FUNCTION trellis_note_changed()""",
    "CREATE TRIGGER nodes_gone AFTER DELETE ON nodes FOR EACH ROW EXECUTE FUNCTION trellis_note_changed()",
    "CREATE INDEX nodes_by_type ON nodes (kind, (fields ->> 'type'), id)",
    """CREATE FUNCTION trellis_grams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT substr(name, at, 3)), '{}') FROM generate_series(1, char_length(name) - 2) AS at $$""",
    "CREATE INDEX node_names_by_gram ON node_names USING gin (trellis_grams(name_key)) WITH (gin_pending_list_limit = 256)",
)


def upgrade() -> None:
    """Make the tables and what keeps them, and fill them from what there is."""
    _make_tables()
    op.execute("INSERT INTO node_names (kind, id, name_key) SELECT kind, id, name_key FROM nodes")
    connection, able = op.get_bind(), True
    if connection.dialect.name == "sqlite":
        able = False
        with suppress(sa.exc.OperationalError):  # this SQLite was built without FTS5: searches look at every name
            connection.exec_driver_sql(_SQLITE_SEARCH)
            connection.exec_driver_sql("INSERT INTO search_index (search_index) VALUES ('rebuild')")
            able = True
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL:
        connection.exec_driver_sql(statement)
    op.execute(f"INSERT INTO counters (name, last, total) VALUES ('search', {0 if able else -1}, 0)")  # noqa: S608  # a number
    _count_gaps(connection)
    op.execute(
        "INSERT INTO request_hours (hour, digit, times) "
        "SELECT substr(at, 1, 13), status / 100, count(*) FROM requests GROUP BY 1, 2"
    )


def _make_tables() -> None:
    op.create_table(
        "node_gaps",
        sa.Column("kind", PLAIN, primary_key=True),
        sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("block", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("gone", NUMBER, nullable=False),
    )
    op.create_table(
        "node_changes",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("kind", PLAIN, nullable=False),
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("parent_id", NUMBER),
        sa.Column("name_key", PLAIN),
        sa.Column("fields", JSON),
        sa.Column("created_at", PLAIN),
        sa.Column("updated_at", PLAIN),
    )
    op.create_table(
        "node_names",
        sa.Column("doc", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("kind", PLAIN, nullable=False),
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("name_key", PLAIN, nullable=False),
    )
    op.create_index("node_names_by_node", "node_names", ["kind", "id"], unique=True)
    op.create_table(
        "request_hours",
        sa.Column("hour", PLAIN, primary_key=True),
        sa.Column("digit", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("times", NUMBER, nullable=False),
    )


def _count_gaps(connection: sa.Connection) -> None:
    """Count, block by block, the ids that were given out and are no node any more."""
    gaps = sa.table("node_gaps", *(sa.column(name) for name in ("kind", "level", "block", "gone")))
    kinds = (
        "SELECT name, last FROM counters WHERE name IN ('forums', 'calendars', 'categories', 'groups', 'blogs') "
        "OR EXISTS (SELECT 1 FROM nodes WHERE kind = name)"
    )
    rows = []
    for kind, last in connection.exec_driver_sql(kinds).all():
        for level in _LEVELS:
            counted = connection.execute(
                sa.text(f"SELECT id >> {level}, count(*) FROM nodes WHERE kind = :kind GROUP BY 1"),  # noqa: S608  # a number
                {"kind": kind},
            )
            living = {int(row[0]): int(row[1]) for row in counted}
            for block in range((last >> level) + 1 if last else 0):
                first, end = max(1, block << level), min(last, ((block + 1) << level) - 1)
                if gone := end - first + 1 - living.get(block, 0):
                    rows.append({"kind": kind, "level": level, "block": block, "gone": gone})
    if rows:
        connection.execute(sa.insert(gaps), rows)
