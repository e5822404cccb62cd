"""PostgreSQL connections that do not wait for ever for a server that has stopped answering."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus

_ENCODING: Final = "UTF8"
_CANCEL: Final = 1.0  # seconds for the request that ends an abandoned statement
# For a table that has just been filled, PostgreSQL has statistics from when it was empty. A plan that reads the whole table then
# looks as good as one that follows an index, and remains in use for a prepared statement. Our statements have indexes to follow.
_WAYS: Final = ("seqscan", "hashjoin", "mergejoin", "material")
# For the same reason tables are joined in the order in which statements name them. For a node and its ancestors, PostgreSQL would
# otherwise join all pairs of the kind first: a second for each record among a few hundred, 20 for a batch of 45 operations.
_IN_ORDER: Final = "join_collapse_limit"
_FOLLOW_INDEXES: Final = "; ".join((*(f"SET enable_{way} = off" for way in _WAYS), f"SET {_IN_ORDER} = 1"))
# Overrides the default of the database or account: a write that has waited for its turn must see what the writes before it wrote.
_SEE_COMMITS: Final = "SET default_transaction_isolation = 'read committed'"
_READ_TABLES: Final = "; ".join((*(f"SET LOCAL enable_{way} = on" for way in _WAYS), f"SET LOCAL {_IN_ORDER} = DEFAULT"))
# For a write: otherwise a server would hold the lock of all writers for a process that was stopped, or whose machine has lost its
# power, for hours. A limit that the operator has set stays.
_END_IDLE: Final = """
    SELECT set_config('idle_in_transaction_session_timeout', %s, false)
    WHERE current_setting('idle_in_transaction_session_timeout') = '0'
"""
# These detect a peer that is gone: probes after 30 s of silence, and at most 10 s until sent data is acknowledged. If only the
# server process is stopped, its machine still acknowledges everything; the time limit of each statement covers that case.
_TCP: Final = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 10_000}


class LimitedConnection(psycopg.Connection[Any]):
    """A connection on which each statement is answered within `limit` seconds, or fails and closes the connection.

    `longest` is the limit for statements that read whole tables.
    """

    limit: float | None = None
    longest: float | None = None

    def prepare_for_writes(self, limit: float, idle: int) -> None:
        """Set the limit for statements, and let the server end a transaction in which nothing happens for `idle` seconds."""
        self.limit = limit
        self.execute(_END_IDLE, (f"{idle}s",))

    @contextmanager
    def reading_everything(self) -> Iterator[None]:
        """Let the rest of this transaction read whole tables, for statements that would compare each row with each by index.

        Inside the context, the limit is `longest`.
        """
        limit, self.limit = self.limit, self.longest
        try:
            self.execute(_READ_TABLES)
            yield
        finally:
            self.limit = limit

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for one of psycopg's generators. Raises OperationalError, also if the time limit has passed.

        Of an error, only the message itself is kept: it is logged, and its details may contain the values of the statement, which
        may be secret.
        """
        try:
            return super().wait(gen, interval, self.limit if timeout is None else timeout)
        except psycopg.Error as error:
            if (message := error.diag.message_primary) is not None:
                error.args = (message,)
            if not isinstance(error, psycopg.OperationalError) or self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self._abandon()
            raise psycopg.OperationalError(f"the server did not answer within {self.limit} seconds") from error

    def _abandon(self) -> None:
        """Ask the server to cancel the running statement, and close the connection, which can no longer be used."""
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=_CANCEL)
        self.close()


def connection_parameters(url: sa.URL, connect_timeout: int) -> dict[str, Any]:
    """Return parameters for connections that detect a dead peer, without those that the URL sets itself."""
    return {name: value for name, value in {"connect_timeout": connect_timeout, **_TCP}.items() if name not in url.query}


def connect_limited(_dialect: object, _record: object, arguments: Sequence[Any], parameters: dict[str, Any]) -> LimitedConnection:
    """Open a connection instead of SQLAlchemy: a listener for its event `do_connect`.

    The time to connect limits the first statement too: a pooler accepts connections that it has no server for. Raises
    NotSupportedError if the encoding of the database is not UTF-8.
    """
    # Without it, the default of a database, an account or the environment applies, which may lack most letters.
    connection = LimitedConnection.connect(*arguments, **(parameters | {"client_encoding": _ENCODING}))
    if (encoding := connection.info.parameter_status("server_encoding")) != _ENCODING:
        connection.close()
        raise psycopg.NotSupportedError(
            f"its encoding is {encoding}, which cannot store every text. Create one with ENCODING '{_ENCODING}' TEMPLATE template0."
        )
    connection.limit = max(0.0, float(parameters["connect_timeout"])) or None
    connection.execute(f"{_FOLLOW_INDEXES}; {_SEE_COMMITS}")
    connection.commit()
    connection.limit = None
    return connection
