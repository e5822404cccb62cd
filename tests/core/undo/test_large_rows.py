"""Writes that touch many nodes with very long texts: they read some of them at a time, whatever else they do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.community import Community
from tests.conftest import runner, settings_for
from tests.databases import Databases
from tests.fixture_types import Clock, Run, RunForEvent
from tests.memory_meter import MemoryMeter
from trellis.compose import compose
from trellis.core.operation import together
from trellis.store import events
from trellis.store.events import pages

pytestmark = pytest.mark.slow

LONGEST = "x" * 12_500  # an eighth of what a description has at most; so is all that is counted in bytes
COUNT = 300
MOST = 45 * 2**17  # bytes: a hundred nodes as they are read, as they are, and as they are written


@pytest.fixture(scope="module")
def _filled(databases: Databases, _community_template: tuple[str, Community]) -> Iterator[tuple[str, int]]:
    """A community with a forum with 4 MB of descriptions in its children, which all name a group."""
    url, community = databases.new(_community_template[0]), _community_template[1]
    gate = compose(settings_for(url), clock=Clock())
    run = runner(gate)
    top = int(run("forums.create", name="Top", permissions={"view": [community.patrons]})["id"])
    part = int(run("forums.create", name="Part", description=LONGEST, permissions={"view": [community.patrons]})["id"])
    operations = [{"operation": "forums.copy", "id": part, "body": {"parentId": top}}] * 60
    for _ in range(COUNT // 60):
        run("core.batch", operations=operations)
    gate.store.close()
    yield url, top
    databases.drop(url)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (together, events, pages):
        name = "_MOST_BYTES" if module is together else "MOST_BYTES"
        assert getattr(module, name) == 8 * 2**20
        monkeypatch.setattr(module, name, 2**20)


@pytest.fixture
def _template(_filled: tuple[str, int]) -> str:
    return _filled[0]


@pytest.fixture
def top(_filled: tuple[str, int]) -> int:
    """The forum that has so much below it."""
    return _filled[1]


@pytest.fixture
def little(do: RunForEvent) -> Callable[..., int]:
    """Run a write, see that it takes little memory, and return the number of its event."""

    def run_with_little(operation: str, target: int | None = None, /, **raw: Any) -> int:
        with MemoryMeter(of_write=True) as meter:
            event = do(operation, target, **raw)
        assert meter.peak < MOST, f"{operation}: {meter.peak:,} bytes"
        return event

    return run_with_little


def count(run: Run, parent: int) -> int:
    return int(run("forums.list", parentId=parent, perPage=1)["totalResults"])


def test_a_branch_is_copied_deleted_and_brought_back(run: Run, top: int, little: Callable[..., int]) -> None:
    copied = little("forums.copy", top, withChildren=True)
    copy = run("events.list", after=copied - 1, limit=1)["results"][0]["resourceId"]
    assert count(run, copy) == COUNT
    undone = little("forums.restore", copied)
    assert run("forums.list", ids=[copy])["totalResults"] == 0
    little("forums.restore", undone)
    assert count(run, copy) == COUNT
    deleted = little("forums.delete", copy, deleteChildrenOrMove=-1)
    little("forums.restore", deleted)
    assert count(run, copy) == COUNT


def test_children_are_moved_away_and_back(run: Run, community: Community, top: int, little: Callable[..., int]) -> None:
    moved = little("forums.delete", top, deleteChildrenOrMove=community.help)
    back = little("forums.restore", moved)
    assert count(run, top) == COUNT
    little("forums.restore", back, deleteCreated=True)
    assert count(run, community.help) == COUNT


def test_a_group_that_all_name_goes_and_comes_back(run: Run, community: Community, top: int, little: Callable[..., int]) -> None:
    deleted = little("groups.delete", community.patrons)
    assert run("forums.get", top)["permissions"]["view"] == []
    with MemoryMeter() as meter:
        named = run("events.lists_naming", deleted, ids=[community.patrons])
    assert named[community.patrons] == {"lists": [], "count": 0}  # the rows of groups, which name none
    assert meter.peak < MOST
    back = little("groups.restore", deleted)
    assert run("forums.get", top)["permissions"]["view"] == [community.patrons]
    little("groups.restore", back, deleteCreated=True)
    assert run("forums.get", top)["permissions"]["view"] == []


def test_very_many_creations_are_undone(run: Run, top: int, little: Callable[..., int]) -> None:
    first = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    creates = [{"operation": "forums.create", "body": {"name": "New", "parentId": top, "description": LONGEST}}] * 60
    for _ in range(5):
        run("core.batch", operations=creates)
    events = run("events.list", after=first, limit=1)["results"]
    assert events[0]["changeSet"] is not None
    sets = {events[0]["changeSet"] + n for n in range(5)}
    for number in sorted(sets):
        little("changesets.restore", number)
    assert count(run, top) == COUNT


def test_what_a_batch_moves_and_deletes_is_no_more_at_once(
    run: Run, community: Community, top: int, little: Callable[..., int]
) -> None:
    ids = [one["id"] for one in run("forums.list", parentId=top, perPage=70)["results"]]

    def restore() -> None:
        little("changesets.restore", run("events.list", order="newest", limit=1)["results"][0]["changeSet"])

    little("core.batch", operations=[update(node, parentId=community.help) for node in ids])
    restore()
    little("core.batch", operations=[{"operation": "forums.delete", "id": node} for node in ids])
    restore()
    assert count(run, top) == COUNT


def update(node: int, **body: Any) -> dict[str, Any]:
    return {"operation": "forums.update", "id": node, "body": body}
