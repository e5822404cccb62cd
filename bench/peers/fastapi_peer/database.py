"""The database: one engine for reads and one for writes, as suits SQLite.

The sessions are synchronous, and are used in place, in the event loop: a statement takes less time than handing it to a thread,
as an asynchronous driver or FastAPI's own threads for plain functions do. Each engine has one connection, since nothing runs beside
another. Reads run in autocommit: a single statement needs no transaction. Writes begin with BEGIN IMMEDIATE, as SQLAlchemy's
documentation advises.
"""

import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from fastapi import Depends
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import StaticPool

FILE = os.environ["PEER_DATABASE"]


def _engine(**settings: Any) -> Engine:
    engine = create_engine(
        f"sqlite:///{FILE}",
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        poolclass=StaticPool,
        **settings,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-16384"):
            connection.execute(f"PRAGMA {pragma}").close()

    return engine


READS = _engine(isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
WRITES = _engine()


@event.listens_for(WRITES, "connect")
def _begin_by_hand(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


@event.listens_for(WRITES, "begin")
def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


_reading = sessionmaker(READS, expire_on_commit=False, autoflush=False)
_writing = sessionmaker(WRITES, expire_on_commit=False)


async def reading() -> AsyncIterator[Session]:
    """Return a session for reads. It is an asynchronous function, so that FastAPI calls it in place."""
    with _reading() as session:
        yield session


async def writing() -> AsyncIterator[Session]:
    """Return a session for one change; those who use it commit, without waiting for anything in between."""
    with _writing() as session:
        yield session


Reading = Annotated[Session, Depends(reading)]
Writing = Annotated[Session, Depends(writing)]
