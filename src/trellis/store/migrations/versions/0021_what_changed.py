"""Adds to the change journal what each entry is about, all columns of a node, and the parent of a new node."""

from typing import Final

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0021"
down_revision = "0020"
effect = Effect(blocks=("nodes", "node_changes"))

_OLD: Final = ("kind", "id", "parent_id", "name_key", "fields", "created_at", "updated_at")
_WATCHED: Final = "parent_id, name, name_key, fields, permissions, created_at, updated_at, external_id, managed_by"
_JOURNAL_OLD: Final = (
    f"INSERT INTO node_changes ({', '.join(_OLD)}, change) VALUES ({', '.join(f'old.{name}' for name in _OLD)}, {{}})"  # noqa: S608  # names of columns
)
_UPDATE, _DELETE = (_JOURNAL_OLD.format(what) for what in ("'update'", "'delete'"))
_JOURNAL_INSERT: Final = "INSERT INTO node_changes (kind, id, parent_id, change) VALUES (new.kind, new.id, new.parent_id, 'insert')"
_SQLITE: Final = (
    "DROP TRIGGER nodes_inserted",
    "DROP TRIGGER nodes_updated",
    "DROP TRIGGER nodes_deleted",
    f"CREATE TRIGGER nodes_inserted AFTER INSERT ON nodes BEGIN {_JOURNAL_INSERT}; END",
    f"CREATE TRIGGER nodes_updated AFTER UPDATE OF {_WATCHED} ON nodes BEGIN {_UPDATE}; END",
    f"CREATE TRIGGER nodes_deleted AFTER DELETE ON nodes BEGIN {_DELETE}; END",
)
_FUNCTION: Final = "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {}; RETURN NULL; END $$"
_POSTGRESQL: Final = (
    _FUNCTION.format("trellis_journal_insert", _JOURNAL_INSERT),
    _FUNCTION.format("trellis_journal_old", _JOURNAL_OLD.format("lower(TG_OP)")),
    "DROP TRIGGER nodes_updated ON nodes",
    f"CREATE TRIGGER nodes_updated AFTER UPDATE OF {_WATCHED} ON nodes FOR EACH ROW EXECUTE FUNCTION trellis_journal_old()",
)


def upgrade() -> None:
    """Add the column, and make the triggers anew."""
    op.add_column("node_changes", sa.Column("change", PLAIN))
    connection = op.get_bind()
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL:
        connection.exec_driver_sql(statement)
