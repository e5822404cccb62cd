"""The nodes as they are kept, and their order, to compare the states of a community; and rows that no operation makes."""

from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

import psycopg

from tests.fixture_types import Run
from tests.sqlite_file import open_sqlite
from trellis.core.gate import Gate
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store.counters import next_numbers
from trellis.store.engine import Transaction
from trellis.store.nodes import insert, rows

Rows = dict[tuple[str, int], dict[str, Any]]


def read_rows(gate: Gate) -> Rows:
    """Read all nodes: (kind, id) → row."""
    with gate.store.reading() as tx:
        return {(kind.name, node.id): asdict(node) for kind in KINDS for node in rows.find_all(tx, kind.name)}


def rows_of(gate: Gate, kind: str = "forums") -> dict[int, dict[str, Any]]:
    """Read the nodes of a kind: id → row."""
    with gate.store.reading() as tx:
        return {node.id: asdict(node) for node in rows.find_all(tx, kind)}


def order(run: Run, parent: int | str = "root", kind: str = "forums") -> list[str]:
    """Return the names of the children in their order, having seen that they are numbered without gaps."""
    found = run(f"{kind}.list", parentId=parent, sortBy="position", perPage=1000)["results"]
    assert [node["position"] for node in found] == list(range(len(found)))
    return [node["name"] for node in found]


def timeless(found: Rows) -> Rows:
    """Return the rows without the time of their last change: undoing is a change."""
    return {key: row | {"updated_at": ""} for key, row in found.items()}


def insert_below(gate: Gate, forum: int, levels: int) -> list[int]:
    """Insert copies of a forum below it, each under the one before, however deep that is; return their ids."""

    def write(tx: Transaction) -> list[int]:
        node = rows.find_by_ids(tx, "forums", (forum,))[forum]
        made: list[int] = []
        for _ in range(levels):
            node = insert(tx, "forums", replace(node, id=next_numbers(tx, "forums", 1)[0], parent_id=node.id, external_id=None))
            made.append(node.id)
        return made

    return gate.store.write(write).result()


def write_by_hand(settings: Settings, *statements: str) -> None:
    """Execute SQL statements, past every constraint."""
    if settings.database_url.startswith("sqlite"):
        with closing(open_sqlite(settings)) as file:
            for statement in ("PRAGMA foreign_keys=OFF", *statements):
                file.execute(statement)
    else:
        with psycopg.connect(settings.database_url) as server:
            for statement in ("SET session_replication_role = replica", *statements):
                server.execute(statement.encode())
