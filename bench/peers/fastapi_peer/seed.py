"""Fills its database with the forums that trellis has, the built-in groups, and a key that may do everything."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, insert

from bench.forest import Forum as Seed
from bench.peers.fastapi_peer.models import Base, Forum, Group, Key

_VERBS = ("list", "get", "create", "update", "delete")
_OPERATIONS = [f"{kind}.{verb}" for kind in ("groups", "forums", "blogs", "calendars", "categories") for verb in _VERBS]
_WHEN = datetime(2026, 1, 15, 12, tzinfo=UTC).replace(tzinfo=None)
_CHUNK = 5000


def fill(file: Path, key: str, permissions: dict[str, Any], forums: Iterable[Seed], progress: Callable[[int], None]) -> None:
    """Make the database."""
    engine = create_engine(f"sqlite:///{file}")
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=ON")
        connection.execute(insert(Key).values(name="Bench", digest=sha256(key.encode()).hexdigest(), grants=_OPERATIONS))
        for id_, name in ((2, "Guests"), (3, "Members"), (4, "Administrators")):
            connection.execute(insert(Group).values(id=id_, name=name, built_in=True))
        done, rows = 0, iter(forums)
        while chunk := [_row(seed, permissions) for seed in islice(rows, _CHUNK)]:
            connection.execute(insert(Forum), chunk)
            done += len(chunk)
            progress(done)
    engine.dispose()


def _row(seed: Seed, permissions: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": seed.id,
        "parent_id": seed.parent_id,
        "position": seed.position,
        "name": seed.name,
        "description": seed.description,
        "permissions": permissions,
        "created_at": _WHEN,
        "updated_at": _WHEN,
    }
