"""Connections to PostgreSQL that are kept when a test closes them, and given to the next one that connects in the same way.

For each new connection PostgreSQL starts a process, which reads the catalogue before it answers: that takes it longer than most
tests take. A connection that is kept has been reset as DISCARD ALL would, but for its prepared statements, which the next one goes
on to use: PostgreSQL takes longer to parse and to plan a statement than to run it for the few rows of a test. Until then it has
another name, so that a test which looks for listeners finds none that is kept.
"""

import os
from collections import defaultdict
from functools import lru_cache
from threading import Lock
from typing import Any, Final, NamedTuple

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, PGconn, TransactionStatus

from trellis.store.engine.limited import LimitedConnection

_MOST: Final = 3  # of one database, at one time: a reader, the writer and the listener
# The server takes a hundred, of all processes of a run together, and some tests open many.
_MOST_OF_ALL: Final = max(1, min(9, 36 // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
_LISTENER: Final = "trellis listener"
_RESET: Final = b"; ".join(
    (
        b"CLOSE ALL",
        b"SET SESSION AUTHORIZATION DEFAULT",  # and the role
        b"RESET ALL",
        b"UNLISTEN *",
        b"SELECT pg_advisory_unlock_all()",
        b"DISCARD TEMP",
        b"DISCARD SEQUENCES",
        b"SELECT pg_stat_force_next_flush()",  # what it has written is told as if it had ended
        b"SET application_name = 'kept'",
    )
)
_TAKE: Final = b"RESET application_name"
_DONE: Final = {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}
_RESTING: Final = {TransactionStatus.IDLE, TransactionStatus.INTRANS, TransactionStatus.INERROR}


class _Kept(NamedTuple):
    made: str
    connection: Any  # of libpq
    prepared: Any  # psycopg's record of its prepared statements


class KeptConnections:
    """The connections of this process that nobody uses, by how they were made."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: defaultdict[str, list[_Kept]] = defaultdict(list)  # by database, the one for which one was kept last at the end

    def keep(self, made: str, connection: Any, prepared: Any) -> bool:
        """Keep a connection of libpq, if it can be used again."""
        if connection.transaction_status not in _RESTING:
            return False
        if connection.transaction_status != TransactionStatus.IDLE:
            connection.exec_(b"ROLLBACK")
        if connection.exec_(_RESET).status not in _DONE:
            return False
        while connection.notifies() is not None:
            pass  # it was told of a commit, and nobody has asked
        with self._lock:
            kept = self._kept.pop(_database_of(made), [])
            self._kept[_database_of(made)] = kept
            if len(kept) == _MOST:
                return False
            if sum(map(len, self._kept.values())) >= _MOST_OF_ALL:  # the tests that come next are like those before
                next(others for others in self._kept.values() if others).pop(0).connection.finish()
            kept.append(_Kept(made, connection, prepared))
            return True

    def take(self, made: str) -> _Kept | None:
        """Return a connection that was made in this way, if there is one that the server has not ended."""
        while True:
            with self._lock:
                kept = self._kept[_database_of(made)]
                if (found := next((one for one in kept if one.made == made), None)) is None:
                    return None
                kept.remove(found)
            if found.connection.exec_(_TAKE).status == ExecStatus.COMMAND_OK:
                return found
            found.connection.finish()

    def count(self, database: str) -> int:
        """Return how many are kept of a database."""
        return len(self._kept.get(database, ()))

    def close(self, database: str) -> None:
        """Close those of a database, which is to be dropped."""
        with self._lock:
            for kept in self._kept.pop(database, ()):
                kept.connection.finish()


KEPT: Final = KeptConnections()


@lru_cache
def _read(made: str) -> dict[str, Any]:
    """Read how a connection is made, once for each way: it takes as long as a short statement."""
    return conninfo_to_dict(made)


def _database_of(made: str) -> str:
    return str(_read(made)["dbname"])


def keep_connections(patch: pytest.MonkeyPatch) -> None:
    """Let the connections of stores in this process be kept, but for those that have a name of their own, for which tests look."""
    connect, close = LimitedConnection._connect_gen.__func__, LimitedConnection.close  # type: ignore[attr-defined]

    def connect_or_take(cls: type[LimitedConnection], made: str) -> Any:
        if (kept := KEPT.take(made)) is None:
            connection = yield from connect(cls, made)
        else:
            connection = cls(kept.connection)
            connection._prepared = kept.prepared
        connection.made = made if _read(made).get("application_name", _LISTENER) == _LISTENER else None
        return connection

    def keep_or_close(connection: Any) -> None:
        held = connection.pgconn
        if not connection.closed and connection.made is not None and KEPT.keep(connection.made, held, connection._prepared):
            connection._closed, connection.pgconn = True, PGconn()  # as one that is closed
        else:
            close(connection)

    patch.setattr(LimitedConnection, "_connect_gen", classmethod(connect_or_take))
    patch.setattr(LimitedConnection, "close", keep_or_close)
