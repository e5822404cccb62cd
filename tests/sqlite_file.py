"""A SQLite file opened beside the service, with its library: two in one process break each other's locks."""

from pathlib import Path
from typing import Any

from trellis.settings import Settings
from trellis.store import sqlite


def file_of(settings: Settings) -> Path:
    """Return the file of a SQLite database."""
    return Path(settings.database_url.removeprefix("sqlite:///"))


def open_sqlite(file: Path | str | Settings) -> Any:
    """Open a file, or make it: a connection on which every statement is a transaction, unless one is begun."""
    return sqlite.connect(file_of(file) if isinstance(file, Settings) else file, create=True)
