"""What one operation costs SQLite does not grow with how much there is beside: in steps of its machine, which are no stop-watch.

What reads everything grows with how much that is, and no faster.

SQLite chooses a plan without statistics, anew with each version of it: what leads to an index today may read every row tomorrow.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from bench.forest import forest
from bench.seed import fill
from tests.conftest import runner, settings_for
from tests.fixture_types import Run
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.store.migrate import migrate

_SIBLINGS: Final = (500, 4_000)
_EVENTS: Final = (200, 1_600)
_MOST: Final = 2.5  # times as many steps; what reads all takes eight times
_MOST_OF_ALL: Final = 13  # times as many steps for eight times as much; what reads all for each takes sixty-four times

Work = Callable[[Run, int], Any]
# By name, with the number of siblings. Each is run on the same place twice: statements are compiled the first time.
_AMONG_SIBLINGS: Final[dict[str, Work]] = {
    "get": lambda run, size: run("forums.get", size // 2),
    "first page": lambda run, _: run("forums.list", parentId="root"),
    "first page by place": lambda run, _: run("forums.list", parentId="root", sortBy="position"),
    "page in the middle by place": lambda run, size: run("forums.list", parentId="root", sortBy="position", page=size // 50),
    "last page by place": lambda run, size: run("forums.list", parentId="root", sortBy="position", page=size // 25),
    "everywhere by place": lambda run, _: run("forums.list", sortBy="position"),
    "create at the end": lambda run, _: run("forums.create", name="Last"),
    "create in the middle": lambda run, size: run("forums.create", name="Middle", position=size // 2),
    "rename": lambda run, size: run("forums.update", size // 2, name="Renamed"),
    "move": lambda run, size: run("forums.update", size // 2 + 7, position=size // 3),
    "delete": lambda run, size: run("forums.delete", run("forums.create", name="Gone", position=size // 3)["id"]),
    "copy": lambda run, size: run("forums.copy", size // 2),
}
_AMONG_EVENTS: Final[dict[str, Work]] = {
    "feed": lambda run, _: run("events.list", limit=10),
    "feed of a resource": lambda run, _: run("events.list", limit=10, resource="forums"),
    "feed of a resource, behind": lambda run, size: run("events.list", limit=10, resource="forums", after=size // 2),
    "feed of a resource, newest": lambda run, _: run("events.list", limit=10, resource="forums", order="newest"),
    "feed of a record": lambda run, _: run("events.list", limit=10, resource="forums", resourceId=1),
    "feed of an operation": lambda run, _: run("events.list", limit=10, operation="forums.update"),
    "feed since": lambda run, _: run("events.list", limit=10, since="2026-01-01T00:00:00Z"),
    "feed until": lambda run, _: run("events.list", limit=10, until="2100-01-01T00:00:00Z"),
    "search of a resource": lambda run, _: run("events.search", limit=10, resource="forums"),
    "search of a record": lambda run, _: run("events.search", limit=10, resource="forums", resourceId=1),
    "search of an operation": lambda run, _: run("events.search", limit=10, operation="forums.update"),
    "search of a change set": lambda run, _: run("events.search", limit=10, changeSet=2),
    "search of the terminal's": lambda run, _: run("events.search", limit=10, actorType="terminal"),
    "search since": lambda run, _: run("events.search", limit=10, **{"from": "2026-01-01T00:00:00Z"}),
    "one event": lambda run, size: run("events.get", size // 2),
    "update": lambda run, _: run("forums.update", 1, name="Renamed"),
    "plan": lambda run, _: run("structure.plan", document=_document_of("Renamed")),  # looks up by whom all have been changed last
}
# What reads or changes everything below a node that has all others below it.
_OF_ALL: Final[dict[str, Work]] = {
    "check": lambda run, _: run("check.list"),
    "search": lambda run, _: run("forums.list", search="garden"),
    "tree": lambda run, _: run("forums.tree", depth=5),
    "below a node": lambda run, _: run("forums.list", under=1, sortBy="name"),
    "export": lambda run, _: run("structure.export"),
    "count of what goes": lambda run, _: run("forums.delete", 1, deleteChildrenOrMove=-1, dryRun=True),
    "copy with all below": lambda run, _: run("forums.copy", 1, withChildren=True, dryRun=True),
    "overview": lambda run, _: run("overview.get"),
    "rights of a group": lambda run, _: run("access.view", group=3, resource="forums"),
}


class _Steps:
    """Counts what all connections do that are opened while it does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._add)

    def _add(self, statement: dict[str, Any]) -> None:
        self.count += statement["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]


@pytest.fixture
def steps() -> Iterator[_Steps]:
    """Steps of every connection that is opened from here on."""
    counted = _Steps()
    apsw.connection_hooks.append(counted)
    yield counted
    apsw.connection_hooks.remove(counted)


Measure = Callable[[int, Callable[[Gate, int], None], Mapping[str, Work]], dict[str, int]]


@pytest.fixture
def measure(tmp_path: Path, steps: _Steps) -> Measure:
    """Fill a database with so much, and return the steps of each piece of work in it."""

    def measured(size: int, make: Callable[[Gate, int], None], works: Mapping[str, Work]) -> dict[str, int]:
        settings = settings_for(f"sqlite:///{tmp_path}/{size}.db")
        migrate(settings)
        gate = compose(settings)
        found = {}
        try:
            make(gate, size)
            run = runner(gate)
            for name, work in works.items():
                work(run, size)
                steps.count = 0
                work(run, size)
                found[name] = steps.count
        finally:
            gate.store.close()
        return found

    return measured


def _find_growing(few_and_many: Iterable[Mapping[str, int]], most: float) -> dict[str, tuple[int, int]]:
    few, many = few_and_many
    assert all(few.values())
    return {name: (few[name], many[name]) for name in few if many[name] > most * few[name]}


def _make_siblings(gate: Gate, size: int) -> None:
    fill(gate, forest("flat", size)[0], lambda _: None)


def _make_tree(gate: Gate, size: int) -> None:
    fill(
        gate, (replace(one, parent_id=None if one.id == 1 else 1 + one.id // 20) for one in forest("flat", size)[0]), lambda _: None
    )


def _document_of(name: str) -> dict[str, Any]:
    forums = [{"externalId": f"forum-{number}", "name": f"{name} {number}"} for number in range(20)]
    return {"format": "trellis/1", "name": "work", "forums": forums}


def _make_events(gate: Gate, size: int) -> None:
    run = runner(gate)
    run("structure.apply", document=_document_of("Forum"))
    for start in range(0, size, 100):
        changes = [{"description": f"Change {number}"} for number in range(start, start + 100)]
        steps = [{"operation": "forums.update", "id": 1 + at % 20, "body": change} for at, change in enumerate(changes)]
        run("core.batch", operations=steps)


def test_no_operation_reads_all_siblings(measure: Measure) -> None:
    assert _find_growing((measure(size, _make_siblings, _AMONG_SIBLINGS) for size in _SIBLINGS), _MOST) == {}


def test_no_operation_reads_all_events(measure: Measure) -> None:
    assert _find_growing((measure(size, _make_events, _AMONG_EVENTS) for size in _EVENTS), _MOST) == {}


def test_what_reads_everything_reads_it_once(measure: Measure) -> None:
    assert _find_growing((measure(size, _make_tree, _OF_ALL) for size in _SIBLINGS), _MOST_OF_ALL) == {}
