"""Connecting to a database: SQLAlchemy's engine for SQLite and for PostgreSQL, and connections outside its pool."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, QueuePool

from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.engine.files import FileLock, remove_unfinished
from trellis.store.engine.transaction import load_json


@contextmanager
def open_engine(settings: Settings, *, create: bool = False) -> Iterator[sa.Engine]:
    """Yield the engine for a database, and close its connections in the end. See `create_engine`."""
    engine = create_engine(settings, create=create)
    try:
        yield engine
    finally:
        engine.dispose()


def create_engine(settings: Settings, *, create: bool = False) -> sa.Engine:
    """Create the SQLAlchemy engine for a database. On both dialects, transactions begin and end with plain SQL statements.

    If a SQLite file does not exist, connecting creates it with `create`, and fails otherwise.
    """
    if settings.database_url.startswith("sqlite"):
        return _create_sqlite_engine(settings, create=create)
    from trellis.store.engine.limited import connect_limited, connection_parameters  # noqa: PLC0415  # start-up time: it loads psycopg

    url = sa.make_url(settings.database_url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        poolclass=QueuePool,
        pool_size=settings.database_pool + 1,
        max_overflow=0,
        pool_timeout=settings.database_pool_timeout,
        hide_parameters=True,  # from errors, whose texts are logged: among them are digests of passwords, and mail with links
        json_deserializer=load_json,  # as on SQLite, and in a quarter of the time that psycopg's deserializer takes
        connect_args=connection_parameters(url, settings.database_connect_timeout),
    )
    sa.event.listen(engine, "do_connect", connect_limited)
    return engine


def connect_directly(engine: sa.Engine, settings: Settings, name: str) -> Any:
    """Open a connection to PostgreSQL outside the pool, with time limits that detect a dead peer within seconds."""
    from trellis.store.engine.limited import connect_limited, connection_parameters  # noqa: PLC0415  # start-up time, as above

    arguments, options = engine.dialect.create_connect_args(engine.url)
    usual = connection_parameters(engine.url, settings.database_connect_timeout)
    parameters = {"application_name": name, **usual, **options, "autocommit": True, "prepare_threshold": None}
    connection = connect_limited(engine.dialect, None, arguments, parameters)
    connection.limit = settings.database_read_timeout
    return connection


def _create_sqlite_engine(settings: Settings, *, create: bool) -> sa.Engine:
    url = sa.make_url(settings.database_url).set(drivername="sqlite")
    connect: Callable[..., Any] = sqlite.connect
    if sqlite.HAS_APSW:
        from trellis.store.engine.apsw_dialect import open_file as connect  # noqa: PLC0415  # apsw is not installed on every machine

        sa.dialects.registry.register("sqlite.apsw", "trellis.store.engine.apsw_dialect", "ApswDialect")
        url = url.set(drivername="sqlite+apsw")
    file = Path(url.database or "")
    lock = FileLock(file)

    def open_connection() -> Any:
        is_new = lock.share()
        connection = connect(file.absolute(), create=create)
        if lock.share() or is_new:  # again, as `connect` may have just created the file
            remove_unfinished(file)
        for pragma in (
            f"busy_timeout={settings.busy_timeout * 1000}",  # first: the others may have to wait
            "journal_mode=WAL",
            "synchronous=FULL",  # an acknowledged write survives a power cut
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "cache_size=-16384",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection

    engine = sa.create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        poolclass=NullPool,
        paramstyle="named",
        creator=open_connection,
        hide_parameters=True,  # as above
    )
    sa.event.listen(engine, "engine_disposed", lambda _engine: lock.release())
    return engine
