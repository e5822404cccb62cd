"""Has Datasette wait for the disk at each commit, as trellis does, whatever its SQLite was compiled with."""

import sqlite3

from datasette import hookimpl


@hookimpl
def prepare_connection(conn: sqlite3.Connection) -> None:
    """Set up each connection."""
    conn.execute("PRAGMA synchronous=FULL")
