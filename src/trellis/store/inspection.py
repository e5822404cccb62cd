"""Queries of `trellis doctor` and `/readyz`: the settings of a PostgreSQL server, and whether it accepts writes."""

from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from trellis.store import moments
from trellis.store.engine import Transaction

_POSTGRESQL: Final = sa.text(
    "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_setting('synchronous_commit'), "
    "current_setting('fsync'), current_setting('max_connections')::int, pg_is_in_recovery(), "
    "current_setting('default_transaction_read_only')::boolean, extract(epoch FROM clock_timestamp())"
)
_ACCEPTS_WRITES: Final = sa.text("SELECT NOT (pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean)")


class Server(NamedTuple):
    """A PostgreSQL server: its settings, and its time in Unix seconds."""

    version: int  # 150004 for 15.4
    encoding: str
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
    return Inspection(server, moments.find_newest_timestamp(tx))


def accepts_writes(tx: Transaction) -> bool:
    """Return whether the server of a database reports that it accepts writes. True for SQLite, which has no server."""
    return tx.sqlite or bool(tx.connection.execute(_ACCEPTS_WRITES).scalar_one())
