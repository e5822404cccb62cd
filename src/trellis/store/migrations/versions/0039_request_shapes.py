"""Stores what many requests have in common only once in the request log."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0039"
down_revision = "0038"
effect = Effect(seconds={"requests": (4, 20)}, blocks=("requests",))

_SHAPE = ("key_id", "operation", "method", "address", "status", "error")
_EMPTY = {"key_id": "0", "operation": "''", "error": "''"}
_VALUES = {name: f"coalesce({name}, {_EMPTY[name]})" if name in _EMPTY else name for name in _SHAPE}
_INSERT = """
    INSERT INTO request_shapes (key_id, operation, method, address, status, error)
    VALUES (coalesce(NEW.key_id, 0), coalesce(NEW.operation, ''), NEW.method, NEW.address, NEW.status, coalesce(NEW.error, ''))
    ON CONFLICT DO NOTHING;
    INSERT INTO logged_requests (at, shape, path, duration, request_id)
    SELECT NEW.at, id, NEW.path, NEW.duration, NEW.request_id FROM request_shapes
    WHERE key_id = coalesce(NEW.key_id, 0) AND operation = coalesce(NEW.operation, '') AND method = NEW.method
    AND address = NEW.address AND status = NEW.status AND error = coalesce(NEW.error, '');
"""
_DELETE = "DELETE FROM logged_requests WHERE id = OLD.id;"


def upgrade() -> None:
    """Write each shape of a request once. The release before reads and writes the log through a view of the form that it had."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "request_shapes",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("key_id", NUMBER, nullable=False),
        sa.Column("operation", PLAIN, nullable=False),
        sa.Column("method", PLAIN, nullable=False),
        sa.Column("address", PLAIN, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("error", PLAIN, nullable=False),
    )
    op.create_table(
        "logged_requests",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", PLAIN, nullable=False),
        sa.Column("shape", NUMBER, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("duration", sa.Integer, nullable=False),
        sa.Column("request_id", PLAIN, nullable=False),
    )
    names = ", ".join(_SHAPE)
    op.execute(f"INSERT INTO request_shapes ({names}) SELECT DISTINCT {', '.join(_VALUES.values())} FROM requests")  # noqa: S608  # no values
    op.create_index(
        "request_shapes_by_key", "request_shapes", ["key_id", "operation", "method", "address", "status", "error"], unique=True
    )
    op.create_index("request_shapes_by_operation", "request_shapes", ["operation"])
    op.create_index("request_shapes_by_address", "request_shapes", ["address"])
    op.create_index("request_shapes_by_status", "request_shapes", ["status"])
    same = " AND ".join(f"s.{name} = {value.replace(name, f'r.{name}')}" for name, value in _VALUES.items())
    op.execute(
        "INSERT INTO logged_requests (id, at, shape, path, duration, request_id) "  # noqa: S608  # no values
        "SELECT r.id, r.at, s.id, r.path, r.duration, r.request_id "
        f"FROM requests r JOIN request_shapes s ON {same} ORDER BY r.id"
    )
    if not is_sqlite:
        op.execute("SELECT setval('logged_requests_id_seq', coalesce((SELECT max(id) FROM logged_requests), 0) + 1, false)")
    op.drop_table("requests")
    op.create_index("logged_requests_by_time", "logged_requests", ["at"])
    op.create_index("logged_requests_by_shape", "logged_requests", ["shape", "at"])
    op.create_index("logged_requests_by_request_id", "logged_requests", ["request_id"])
    op.execute(
        "CREATE VIEW requests AS SELECT r.id, r.at, s.method, r.path, nullif(s.operation, '') AS operation, "
        "nullif(s.key_id, 0) AS key_id, s.address, s.status, r.duration, r.request_id, nullif(s.error, '') AS error "
        "FROM logged_requests r JOIN request_shapes s ON s.id = r.shape"
    )
    for event, does in (("INSERT", _INSERT), ("DELETE", _DELETE)):
        _redirect(event, does, is_sqlite=is_sqlite)
    row, shape = (150 if is_sqlite else 260), 200
    op.execute(
        "UPDATE counters SET total = "  # noqa: S608  # no values
        f"(SELECT coalesce(sum({row} + length(path) + 2 * length(request_id)), 0) FROM logged_requests) + "
        f"(SELECT coalesce(sum({shape} + 2 * (length(operation) + length(method) + length(address) + length(error))), 0) "
        "FROM request_shapes) WHERE name = 'request log bytes'"
    )


def _redirect(event: str, does: str, *, is_sqlite: bool) -> None:
    """Let what is inserted into the view, or deleted from it, be so in the tables."""
    name = f"requests_{event.lower()}"
    if is_sqlite:
        op.execute(f"CREATE TRIGGER {name} INSTEAD OF {event} ON requests BEGIN {does} END")
    else:
        row = "NEW" if event == "INSERT" else "OLD"
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} RETURN {row}; END $$")
        op.execute(f"CREATE TRIGGER {name} INSTEAD OF {event} ON requests FOR EACH ROW EXECUTE FUNCTION {name}()")
