"""Marks in the change journal (recent changes of nodes) whether a name or parent changed, on which the paths below it depend."""

from typing import Final

from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0040"
down_revision = "0039"
effect = Effect()

_OLD: Final = ("kind", "id", "parent_id", "name_key", "fields", "created_at", "updated_at")
_WATCHED: Final = "parent_id, name, name_key, fields, permissions, created_at, updated_at, external_id, managed_by"
_JOURNAL: Final = f"INSERT INTO node_changes ({', '.join(_OLD)}, change) VALUES ({', '.join(f'old.{name}' for name in _OLD)}, {{}})"  # noqa: S608  # names of columns
_SAME: Final = "old.name = new.name AND coalesce(old.parent_id, 0) = coalesce(new.parent_id, 0)"
_SQLITE: Final = _JOURNAL.format(f"CASE WHEN {_SAME} THEN 'edit' ELSE 'update' END")
_POSTGRESQL: Final = _JOURNAL.format("what")


def upgrade() -> None:
    """Make the trigger of updates anew. The release before takes an edit for more than it is."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER nodes_updated")
        op.execute(f"CREATE TRIGGER nodes_updated AFTER UPDATE OF {_WATCHED} ON nodes BEGIN {_SQLITE}; END")
    else:
        op.execute(
            "CREATE OR REPLACE FUNCTION trellis_journal_old() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "DECLARE what text := lower(TG_OP); BEGIN "
            f"IF TG_OP = 'UPDATE' AND {_SAME} THEN what := 'edit'; END IF; {_POSTGRESQL}; RETURN NULL; END $$"
        )
