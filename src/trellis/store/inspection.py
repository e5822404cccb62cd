"""What is asked of a PostgreSQL server: its settings, whether it accepts writes, and whether a pooler is in front of it."""

from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store import last_runs
from trellis.store.engine import Transaction

_POSTGRESQL: Final = sa.text(
    "SELECT current_setting('server_version_num')::int, current_setting('synchronous_commit'), "
    "current_setting('fsync'), current_setting('max_connections')::int, pg_is_in_recovery(), "
    "current_setting('default_transaction_read_only')::boolean, extract(epoch FROM clock_timestamp())"
)
_TIMES: Final = 5  # queries on each of two connections: on a busy pooler, another client may get the session in between
_ACCEPTS_WRITES: Final = sa.text("SELECT NOT (pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean)")


# Written to a temporary file, since it does not fit into the memory for it. Small writes succeed on a full disk, unlike this.
_LITTLE_MEMORY: Final = sa.text("SET LOCAL work_mem = '64kB'")
_NEEDS_ROOM: Final = sa.text("SELECT count(*) FROM generate_series(1, 100000)")  # 2 MB


class Server(NamedTuple):
    """A PostgreSQL server: its settings, and its time in Unix seconds."""

    version: int  # 150004 for 15.4
    synchronous_commit: str
    fsync: str
    max_connections: int
    is_standby: bool
    is_read_only: bool
    time: float


class Inspection(NamedTuple):
    """The result: the server (None for SQLite), and the timestamp of the newest row of the event and request logs."""

    server: Server | None
    newest_at: str | None


def inspect(tx: Transaction) -> Inspection:
    """Read the settings of a database's server, and the timestamp of its newest log row."""
    server: Server | None = None
    if not tx.sqlite:
        found: Any = tx.connection.execute(_POSTGRESQL).one()
        server = Server._make((*found[:-1], float(found[-1])))
    return Inspection(server, last_runs.find_newest_timestamp(tx))


def accepts_writes(tx: Transaction) -> bool:
    """Return whether the server of a database reports that it accepts writes. True for SQLite, which has no server."""
    return tx.sqlite or bool(tx.connection.execute(_ACCEPTS_WRITES).scalar_one())


def need_room(tx: Transaction) -> None:
    """Let the server of a PostgreSQL database use 2 MB of its disk for a moment. Raises an error if the disk is full."""
    tx.connection.execute(_LITTLE_MEMORY)
    tx.connection.execute(_NEEDS_ROOM)


def shares_sessions(engine: sa.Engine) -> bool:
    """Return whether a pooler gives the transactions of one connection to several sessions of the server, or the other way round.

    LISTEN, prepared statements, and the settings of a connection (how it follows indexes, and when the server ends an abandoned
    write) need a session of their own. A direct connection costs one query: a pooler tells its clients another number than that of
    the server's process, since it passes their requests to cancel on.
    """
    with engine.connect() as one:
        raw: Any = one.connection.driver_connection
        if _find_process(one) == raw.info.backend_pid:
            return False
        with engine.connect() as another:
            seen = [(_find_process(one), _find_process(another)) for _ in range(_TIMES)]
    return len(set(seen)) > 1 or any(mine == theirs for mine, theirs in seen)


def _find_process(connection: sa.Connection) -> int:
    raw: Any = connection.connection.driver_connection
    return int(raw.execute("SELECT pg_backend_pid()", prepare=False).fetchone()[0])  # another session would not know it
