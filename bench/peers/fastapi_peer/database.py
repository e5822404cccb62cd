"""The database: one engine for reads and one for writes, as suits SQLite.

Reads run in autocommit: a single statement needs no transaction, and each round trip to aiosqlite's thread costs. They have
one connection: on one core, 2, 4, 8 and 32 were slower, since threads that wait for the interpreter's lock gain nothing.
Writes have one connection, so that they queue in the event loop rather than at SQLite's lock, and begin with
BEGIN IMMEDIATE, as SQLAlchemy's documentation advises.
"""

import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from fastapi import Depends
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

FILE = os.environ["PEER_DATABASE"]


def _engine(**settings: Any) -> AsyncEngine:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{FILE}",
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        pool_timeout=60,
        **settings,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-16384"):
            connection.execute(f"PRAGMA {pragma}").close()

    return engine


READS = _engine(pool_size=1, max_overflow=0, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
WRITES = _engine(pool_size=1, max_overflow=0)


@event.listens_for(WRITES.sync_engine, "connect")
def _begin_by_hand(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


@event.listens_for(WRITES.sync_engine, "begin")
def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


_reading = async_sessionmaker(READS, expire_on_commit=False, autoflush=False)
_writing = async_sessionmaker(WRITES, expire_on_commit=False)


async def reading() -> AsyncIterator[AsyncSession]:
    """Return a session for reads."""
    async with _reading() as session:
        yield session


async def writing() -> AsyncIterator[AsyncSession]:
    """Return a session for one change; those who use it commit."""
    async with _writing() as session:
        yield session


Reading = Annotated[AsyncSession, Depends(reading)]
Writing = Annotated[AsyncSession, Depends(writing)]
