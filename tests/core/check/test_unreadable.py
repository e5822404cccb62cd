"""The check of a database with a wrong value: whatever stands in a column, the check ends with a report, and so does the repair."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple

import psycopg
import pytest
import sqlalchemy as sa

from tests.fixture_types import Run
from trellis.core.actor import TERMINAL
from trellis.core.events import Recorder
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store import check, sqlite
from trellis.store.column_types import JSON
from trellis.store.engine import Rollback, Transaction
from trellis.store.tables import (
    METADATA,
    administrators,
    counters,
    deleted_id_counts,
    events,
    keys,
    node_changes,
    nodes,
    proposals,
    request_shapes,
    requests,
    search_names,
    sibling_blocks,
    snapshots,
    webhooks,
)

_HUGE: Final = str(2**63 - 1)
_NUMBERS: Final = ("-7", str(2**40), _HUGE)
_NOT_UTF8: Final = "CAST(x'41ff42' AS TEXT)"
_JSON: Final = ("'5'", "'[5]'", "'[{}]'", "'[[]]'")  # of another shape
_ENTRY: Final = """'[{"resource": "forums", "id": "1", "how": "made"}]'"""  # in `touched`; the id is no number
_TYPES: Final = ("'x'", "x'00ff'", _NOT_UTF8)  # text, bytes and text that is not UTF-8, which SQLite stores in any column
# The tables that the check reads for more than the types of their values: there, each value is planted without others in its group
# of tables, where one could hide another. No part of the check reads two of the groups that are side by side.
_SIDE_BY_SIDE: Final = {
    "nodes": (deleted_id_counts, node_changes, nodes, search_names, sibling_blocks),
    "keys": (keys,),
    "webhooks": (webhooks,),
    "admins": (administrators,),
    "requests": (request_shapes, requests),
}
_ALONE: Final = (counters, events, snapshots)  # they are read with many others, or a repair needs them
_READ: Final = frozenset(chain(_ALONE, *_SIDE_BY_SIDE.values()))
_WITH_MEMBERS: Final = (events.c.actor, events.c.approved_by, proposals.c.closed_by)
_READ_WHOLE: Final = frozenset({counters, deleted_id_counts, nodes, sibling_blocks})  # and where rows are compared with each other


def _row(table: sa.Table) -> dict[str, Any]:
    """Return a row for a table that has none."""
    actor = {"type": "terminal", "name": "terminal"}
    of: tuple[tuple[Any, Any], ...] = ((sa.Boolean, True), (sa.Integer, 1), (type(JSON), actor), (sa.Text, "x"))
    return {column.key: next(value for kind, value in of if isinstance(column.type, kind)) for column in table.columns}


def _types(column: sa.Column[Any]) -> tuple[str, ...]:
    """Return what of another type to plant in a column: of what is as unreadable there as the rest, one, in each column another."""
    if isinstance(column.type, type(JSON)):
        return _TYPES
    readable = _TYPES[:1] if isinstance(column.type, sa.Text) else ()
    unreadable = _TYPES[len(readable) :]
    return (*readable, unreadable[list(column.table.columns).index(column) % len(unreadable)])


def _is_odd(column: sa.Column[Any], tx: Transaction) -> bool:
    """Return whether a column is one of every second, on each engine the others: what is the same on both is planted on one."""
    return (list(column.table.columns).index(column) + tx.sqlite) % 2 == 1


def _values(column: sa.Column[Any], tx: Transaction) -> Iterator[str]:
    """Yield what to plant in a column."""
    yield from (_NUMBERS[_is_odd(column, tx)], _HUGE) if isinstance(column.type, sa.Integer) else ()
    yield from _JSON if isinstance(column.type, type(JSON)) else ()
    yield from ("'{}'",) if column in _WITH_MEMBERS else ()
    yield from (_ENTRY,) if column is events.c.touched else ()
    yield from _types(column) if tx.sqlite else ()
    yield from ("NULL",) if column.nullable else ()


class _Planting(NamedTuple):
    """What to plant where: in the last row, or in all rows."""

    column: sa.Column[Any]
    value: str
    everywhere: bool


def _plantings(tables: Iterable[sa.Table], tx: Transaction) -> Iterator[_Planting]:
    for column in (column for table in tables for column in table.columns):
        for value in _values(column, tx):
            yield _Planting(column, value, everywhere=False)
            if column.table in _READ_WHOLE and not _is_unreadable(column, value) and _is_odd(column, tx):
                yield _Planting(column, value, everywhere=True)


def _find_group(resource: str) -> str:
    """Return in which group of tables something is that a problem names: a table, its records, or a kind of nodes."""
    groups = ((group, {group, *(table.name for table in tables)}) for group, tables in _SIDE_BY_SIDE.items())
    return next((group for group, names in groups if resource in names), "nodes")


def _is_unreadable(column: sa.Column[Any], value: str) -> bool:
    if value == _NOT_UTF8:
        return True
    if isinstance(column.type, type(JSON)):
        if column.table in {nodes, node_changes}:
            return False  # it is told as a field or permission, and repaired; the journal has nodes as they were
        return value != "NULL"
    return value in {_HUGE, "x'00ff'"} or (value == "'x'" and not isinstance(column.type, sa.Text))


def _plant(tx: Transaction, column: sa.Column[Any], value: str, *, everywhere: bool = False) -> bool:
    """Put a value into the last row, or into all rows. Return False if the engine refuses it."""
    name, row = column.table.name, "rowid" if tx.sqlite else "ctid"
    where = "" if everywhere else f" WHERE {row} = (SELECT max({row}) FROM {name})"  # noqa: S608  # our own names
    with suppress(sqlite.Error, psycopg.Error), tx.savepoint():
        tx.raw.execute(f'UPDATE {name} SET "{column.name}" = {value}{where}')  # noqa: S608
        return True
    return False


class _Check:
    """Checks a database in a transaction that is rolled back."""

    def __init__(self, gate: Gate, tx: Transaction) -> None:
        self._gate = gate
        self._tx = tx
        self.failed: list[str] = []

    def run(self, operation: str) -> dict[str, Any]:
        """Run the check or the repair."""
        call, of = Call(operation, TERMINAL), self._gate.catalogue.find(operation)
        recorder = Recorder(self._tx, of, call, self._gate.now())
        context = self._gate.calls.build_context(of, call, of.form.read({}), recorder)
        return dict(context.run(call).result)

    def find_unreadable(self, about: str) -> list[str]:
        """Run the check, and the repair if there is something to repair; return where it tells of unreadable values."""
        try:
            with self._tx.savepoint():
                found = self.run("check.list")
                if found["repairable"]:
                    self.run("check.repair")
        except Exception as error:  # noqa: BLE001  # all failures are told together
            self.failed.append(f"{about}: {error!r}")
            return []
        return [one["resource"] for one in found["problems"] if one["problem"] == "unreadable"]


@pytest.mark.slow
@pytest.mark.usefixtures("community", "small_blocks")
def test_whatever_stands_in_a_column_the_check_ends_with_a_report(gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "check_file", lambda _tx, _most: [])  # it would read the file, not the transaction
    scanned = gate.store.read_single(check.count_scanned)
    monkeypatch.setattr(check, "count_scanned", lambda _tx: scanned)  # the same each time: values are planted, not rows
    run("keys.create", name="Importer", grants=["forums.list"])
    run("webhooks.create", url="https://hooks.example/", events=["*"])
    run("admins.create", name="Mira", login="mira", password="kept in a tin box")
    run("core.batch", operations=[{"operation": "forums.create", "body": {"name": f"F{n}"}} for n in range(9)])
    run("forums.delete", run("forums.list", search="F8")["results"][0]["id"])
    gate.store.write(lambda tx: _plant_each(gate, tx)).result()  # the run gives it up, if need be


def _plant_each(gate: Gate, tx: Transaction) -> None:
    tx.raw.execute("PRAGMA defer_foreign_keys = ON" if tx.sqlite else "SET LOCAL session_replication_role = replica")
    checked = _Check(gate, tx)
    for table in METADATA.sorted_tables:
        if not tx.connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one():
            tx.connection.execute(sa.insert(table).values(_row(table)))
    assert checked.find_unreadable("nothing") == []
    wrong = {(column, value) for table in METADATA.sorted_tables for column in table.columns for value in _values(column, tx)}
    groups = [list(_plantings(tables, tx)) for tables in _SIDE_BY_SIDE.values()]
    for together in (*zip_longest(*groups), *((one,) for one in _plantings(_ALONE, tx))):
        with tx.trial():
            planted = [one for one in together if one is not None and _plant(tx, one.column, one.value, everywhere=one.everywhere)]
            told = {_find_group(resource) for resource in checked.find_unreadable(str(planted))} if planted else set()
            wanted = {_find_group(one.column.table.name) for one in planted if _is_unreadable(one.column, one.value)}
            if told != wanted:
                checked.failed.append(f"{planted}: values of {told} are told to be unreadable")
    for value in (*_NUMBERS, *_JSON, "'{}'", *_TYPES, "NULL"):
        with tx.trial():
            columns = [one for one, other in wrong if other == value and one.table not in _READ and _plant(tx, one, value)]
            count = len(checked.find_unreadable(value))
            if count != sum(_is_unreadable(column, value) for column in columns):
                checked.failed.append(f"{value}: {count} are told to be unreadable")
    assert not checked.failed, "\n".join(checked.failed)
    raise Rollback(None)
