"""The rows of the other services: the forums that trellis has, as rows of one table in a file of SQLite."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.forest import forest
from bench.others.cases import FORUMS
from bench.seed import PERMISSIONS

WHEN: Final = "2026-01-15T12:00:00.000Z"
_INSERT: Final = (
    "INSERT INTO forums (id, name, description, parent_id, permissions, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def fill(file: Path, timestamp: str | int = WHEN) -> None:
    """Write the forums into the table that is there, and set the file to WAL, which it keeps."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        with connection:
            connection.executemany(_INSERT, _rows(timestamp))


def _rows(timestamp: str | int) -> Iterator[tuple[object, ...]]:
    permissions = json.dumps(PERMISSIONS)
    for forum in forest("realistic", FORUMS)[0]:
        yield forum.id, forum.name, forum.description, forum.parent_id, permissions, timestamp, timestamp


def count(file: Path) -> int:
    """Count the forums in the file; reading it does not hold up the service that has it open."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM forums").fetchone()[0])
