"""The limit of writing: a bare loop of durable commits of one row each, on the disk or the server that the services write to."""

import argparse
import json
import sqlite3
import time
from collections.abc import Callable

import psycopg

_ROW = json.dumps({"name": "Garden diaries", "description": "<p>A year in your garden.</p>", "filling": "." * 400})
_TABLE = "CREATE TABLE IF NOT EXISTS bench_rows (id {} PRIMARY KEY, body TEXT NOT NULL)"


def commits(where: str, seconds: float) -> dict[str, float]:
    """Commit rows for so long; give the number of commits, the seconds that passed, and the microseconds of CPU for each."""
    commit = _on_postgresql(where) if where.startswith("postgresql://") else _on_sqlite(where)
    took: list[float] = []
    started, cpu = time.perf_counter(), time.process_time()
    now, end = started, started + seconds
    while now < end:
        commit()
        before, now = now, time.perf_counter()
        took.append(now - before)
    spent = time.process_time() - cpu
    took.sort()
    return {
        "requests": len(took),
        "seconds": now - started,
        "p50": took[len(took) // 2] * 1e6,
        "p99": took[len(took) * 99 // 100] * 1e6,
        "cpu": spent / len(took) * 1e6,
    }


def _on_sqlite(file: str) -> Callable[[], object]:
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(_TABLE.format("INTEGER"))

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bench_rows (body) VALUES (?)", (_ROW,))
        connection.execute("COMMIT")

    return commit


def _on_postgresql(url: str) -> Callable[[], object]:
    cursor = psycopg.connect(url, autocommit=True).cursor()
    cursor.execute(_TABLE.format("BIGSERIAL"))
    return lambda: cursor.execute("INSERT INTO bench_rows (body) VALUES (%s)", (_ROW,))


def main() -> None:
    """Run the loop, and print what it did as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", help="a file, or the address of a database of PostgreSQL")
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    print(json.dumps(commits(given.where, given.seconds)))


if __name__ == "__main__":
    main()
