"""What one operation costs SQLite does not grow with how many siblings there are: in steps of its machine, which are no stop-watch.

SQLite chooses a plan without statistics, anew with each version of it: what leads to an index today may read every row tomorrow.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from bench.forest import forest
from bench.seed import fill
from tests.conftest import runner, settings_for
from tests.fixture_types import Run
from trellis.compose import compose
from trellis.store.migrate import migrate

_FEW: Final = 1_000
_MANY: Final = 8_000

Work = Callable[[Run, int], Any]
# By name, with the number of siblings. Each is run on the same place twice: statements are compiled the first time.
_WORK: Final[dict[str, Work]] = {
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


def _measure(file: Path, size: int, steps: _Steps) -> dict[str, int]:
    settings = settings_for(f"sqlite:///{file}")
    migrate(settings)
    gate = compose(settings)
    found = {}
    try:
        fill(gate, forest("flat", size)[0], lambda _: None)
        run = runner(gate)
        for name, work in _WORK.items():
            work(run, size)
            steps.count = 0
            work(run, size)
            found[name] = steps.count
    finally:
        gate.store.close()
    return found


def test_no_operation_reads_all_siblings(tmp_path: Path, steps: _Steps) -> None:
    few, many = (_measure(tmp_path / f"{size}.db", size, steps) for size in (_FEW, _MANY))
    assert all(few.values())
    assert {name: (few[name], many[name]) for name in few if many[name] > 2.5 * few[name]} == {}
