"""Connections to PostgreSQL that are kept when a test closes them, and given to the next one that connects in the same way.

For each new connection PostgreSQL starts a process, which reads the catalogue before it answers: that takes it longer than most
tests take. A connection that is kept has been reset by DISCARD ALL; all that is left of its past is in the server's caches.
"""

from collections import defaultdict
from threading import Lock
from typing import Any, Final

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, PGconn, TransactionStatus

from trellis.store.engine.limited import LimitedConnection

_MOST: Final = 2  # of one database, at one time: a reader and the writer
_MOST_OF_ALL: Final = 6
_RESET: Final = (b"DISCARD ALL", b"SELECT pg_stat_force_next_flush()")  # what it has written is told as if it had ended
_DONE: Final = {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}
_RESTING: Final = {TransactionStatus.IDLE, TransactionStatus.INTRANS, TransactionStatus.INERROR}


class KeptConnections:
    """The connections of this process that nobody uses, by how they were made."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)  # by database: how it was made, connection

    def keep(self, made: str, connection: Any) -> bool:
        """Keep a connection of libpq, if it can be used again."""
        if connection.transaction_status not in _RESTING:
            return False
        if connection.transaction_status != TransactionStatus.IDLE:
            connection.exec_(b"ROLLBACK")
        if any(connection.exec_(command).status not in _DONE for command in _RESET):
            return False
        with self._lock:
            kept = self._kept[_database_of(made)]
            if len(kept) == _MOST or sum(map(len, self._kept.values())) == _MOST_OF_ALL:
                return False
            kept.append((made, connection))
            return True

    def take(self, made: str) -> Any | None:
        """Return a connection that was made in this way, if there is one that the server has not ended."""
        while True:
            with self._lock:
                kept = self._kept[_database_of(made)]
                if (found := next((pair for pair in kept if pair[0] == made), None)) is None:
                    return None
                kept.remove(found)
            if found[1].exec_(b"").status == ExecStatus.EMPTY_QUERY:
                return found[1]
            found[1].finish()

    def count(self, database: str) -> int:
        """Return how many are kept of a database."""
        return len(self._kept[database])

    def close(self, database: str) -> None:
        """Close those of a database, which is to be dropped."""
        with self._lock:
            for _, connection in self._kept.pop(database, ()):
                connection.finish()


KEPT: Final = KeptConnections()


def _database_of(made: str) -> str:
    return str(conninfo_to_dict(made)["dbname"])


def keep_connections(patch: pytest.MonkeyPatch) -> None:
    """Let the connections of stores in this process be kept, but for those that have a name, for which tests look."""
    connect, close = LimitedConnection._connect_gen.__func__, LimitedConnection.close  # type: ignore[attr-defined]

    def connect_or_take(cls: type[LimitedConnection], made: str) -> Any:
        if (kept := KEPT.take(made)) is None:
            connection = yield from connect(cls, made)
        else:
            connection = cls(kept)
        connection.made = made if "application_name" not in conninfo_to_dict(made) else None
        return connection

    def keep_or_close(connection: Any) -> None:
        held = connection.pgconn
        if not connection.closed and connection.made is not None and KEPT.keep(connection.made, held):
            connection._closed, connection.pgconn = True, PGconn()  # as one that is closed
        else:
            close(connection)

    patch.setattr(LimitedConnection, "_connect_gen", classmethod(connect_or_take))
    patch.setattr(LimitedConnection, "close", keep_or_close)
