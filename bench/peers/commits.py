"""The limit of writing: a bare loop of durable commits of one row each, on the disk that the services write to."""

import argparse
import json
import sqlite3
import time
from pathlib import Path

_ROW = json.dumps({"name": "Garden diaries", "description": "<p>A year in your garden.</p>", "filling": "." * 400})


def commits(file: Path, seconds: float) -> dict[str, float]:
    """Commit rows for so long; give the number of commits, the seconds that passed, and the microseconds of CPU for each."""
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    took: list[float] = []
    started, cpu = time.perf_counter(), time.process_time()
    now, end = started, started + seconds
    while now < end:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (body) VALUES (?)", (_ROW,))
        connection.execute("COMMIT")
        before, now = now, time.perf_counter()
        took.append(now - before)
    spent = time.process_time() - cpu
    connection.close()
    took.sort()
    return {
        "requests": len(took),
        "seconds": now - started,
        "p50": took[len(took) // 2] * 1e6,
        "p99": took[len(took) * 99 // 100] * 1e6,
        "cpu": spent / len(took) * 1e6,
    }


def main() -> None:
    """Run the loop, and print what it did as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    print(json.dumps(commits(given.file, given.seconds)))


if __name__ == "__main__":
    main()
