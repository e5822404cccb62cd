"""Renames tables and columns after what they hold: blocks of a B-tree, counts of deleted ids, names in the search index."""

from contextlib import suppress
from typing import Final

import sqlalchemy as sa
from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0008"
down_revision = "0007"

_TABLES: Final = {
    "shelves": "sibling_blocks",
    "node_gaps": "deleted_id_counts",
    "node_names": "search_names",
    "idempotent_answers": "idempotent_responses",
}
effect = Effect(seconds={"nodes": (10, 0)}, blocks=(*_TABLES, "nodes", "node_changes", "snapshots"), reads=False, writes=False)
_COLUMNS: Final = (  # table, by its new name; old name; new name
    ("nodes", "shelf", "block"),
    ("nodes", "position", "block_offset"),
    ("sibling_blocks", "above", "parent_block"),
    ("sibling_blocks", "before", "start"),
    ("deleted_id_counts", "level", "shift"),
    ("deleted_id_counts", "block", "prefix"),
    ("deleted_id_counts", "gone", "deleted"),
    ("node_changes", "n", "seq"),
    ("search_names", "doc", "document_id"),
    ("snapshots", "how", "change"),
    ("snapshots", "beside", "neighbours"),
    ("idempotent_responses", "answer", "response"),
)
_INDEXES: Final = {
    "shelves_within": "sibling_blocks_by_parent_block",
    "shelves_of_family": "sibling_blocks_roots",
    "node_names_by_node": "search_names_by_node",
    "idempotent_answers_by_time": "idempotent_responses_by_time",
}
_CREATE_INDEXES: Final = (  # the same, for SQLite, which cannot rename an index
    "CREATE INDEX sibling_blocks_by_parent_block ON sibling_blocks (parent_block)",
    "CREATE UNIQUE INDEX sibling_blocks_roots ON sibling_blocks (kind, parent_id) WHERE parent_block = 0",
    "CREATE UNIQUE INDEX search_names_by_node ON search_names (kind, id)",
    "CREATE INDEX idempotent_responses_by_time ON idempotent_responses (at)",
)
_DROP_TRIGGERS: Final = ("nodes_made", "nodes_changed", "nodes_gone")

_OLD: Final = ("kind", "id", "parent_id", "name_key", "fields", "created_at", "updated_at")
_WATCHED: Final = "parent_id, name_key, fields, created_at, updated_at"
_JOURNAL_INSERT: Final = "INSERT INTO node_changes (kind, id) VALUES (new.kind, new.id)"
_JOURNAL_OLD: Final = f"INSERT INTO node_changes ({', '.join(_OLD)}) VALUES ({', '.join(f'old.{name}' for name in _OLD)})"  # noqa: S608  # names of columns
_SQLITE_TRIGGERS: Final = (
    f"CREATE TRIGGER nodes_inserted AFTER INSERT ON nodes BEGIN {_JOURNAL_INSERT}; END",
    f"CREATE TRIGGER nodes_updated AFTER UPDATE OF {_WATCHED} ON nodes BEGIN {_JOURNAL_OLD}; END",
    f"CREATE TRIGGER nodes_deleted AFTER DELETE ON nodes BEGIN {_JOURNAL_OLD}; END",
)
_SQLITE_SEARCH: Final = (
    "CREATE VIRTUAL TABLE search_trigrams USING fts5(name_key, content='search_names', content_rowid='document_id', "
    "tokenize='trigram case_sensitive 1', detail=none, columnsize=0)"
)
_POSTGRESQL: Final = (
    "DROP FUNCTION trellis_note_made()",
    "DROP FUNCTION trellis_note_changed()",
    f"CREATE FUNCTION trellis_journal_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_JOURNAL_INSERT}; RETURN NULL; END $$",
    f"CREATE FUNCTION trellis_journal_old() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_JOURNAL_OLD}; RETURN NULL; END $$",
    "CREATE TRIGGER nodes_inserted AFTER INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION trellis_journal_insert()",
    f"CREATE TRIGGER nodes_updated AFTER UPDATE OF {_WATCHED} ON nodes FOR EACH ROW EXECUTE FUNCTION trellis_journal_old()",
    "CREATE TRIGGER nodes_deleted AFTER DELETE ON nodes FOR EACH ROW EXECUTE FUNCTION trellis_journal_old()",
    "ALTER FUNCTION trellis_grams(text) RENAME TO trellis_trigrams",
    "ALTER INDEX node_names_by_gram RENAME TO search_names_by_trigram",
    *(f"ALTER INDEX {old} RENAME TO {new}" for old, new in _INDEXES.items()),
    *(f"ALTER INDEX {old}_pkey RENAME TO {new}_pkey" for old, new in _TABLES.items()),
    "ALTER SEQUENCE node_names_doc_seq RENAME TO search_names_document_id_seq",
    "ALTER SEQUENCE node_changes_n_seq RENAME TO node_changes_seq_seq",
)


def upgrade() -> None:
    """Rename everything in place; no row is written but those of SQLite's search index, which names the table it reads."""
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    for trigger in _DROP_TRIGGERS:
        connection.exec_driver_sql(f"DROP TRIGGER {trigger}" if is_sqlite else f"DROP TRIGGER {trigger} ON nodes")
    if is_sqlite:
        for index in _INDEXES:
            connection.exec_driver_sql(f"DROP INDEX {index}")
        with suppress(sa.exc.OperationalError):  # there is none, or this SQLite was built without FTS5: then it stays, unused
            connection.exec_driver_sql("DROP TABLE search_index")
    for old, new in _TABLES.items():
        connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")
    for table, old, new in _COLUMNS:
        connection.exec_driver_sql(f'ALTER TABLE {table} RENAME COLUMN "{old}" TO "{new}"')
    for statement in (*_CREATE_INDEXES, *_SQLITE_TRIGGERS) if is_sqlite else _POSTGRESQL:
        connection.exec_driver_sql(statement)
    if is_sqlite:
        _index_names(connection)


def _index_names(connection: sa.Connection) -> None:
    """Index the names anew, as of the same change as before; without FTS5 there is no index, and -1 says so."""
    try:
        connection.exec_driver_sql(_SQLITE_SEARCH)
    except sa.exc.OperationalError:
        connection.exec_driver_sql("UPDATE counters SET last = -1 WHERE name = 'search'")
    else:
        connection.exec_driver_sql("INSERT INTO search_trigrams (search_trigrams) VALUES ('rebuild')")
