"""Nodes that must not have children, of a kind that is declared here: sentences call them and their field by their own names."""

from collections.abc import Iterator
from typing import Final

import pytest
import sqlalchemy as sa

from tests.conftest import runner
from tests.fixture_types import Clock, Run
from trellis.compose import compose
from trellis.core.fields import Choice, Field
from trellis.core.gate import Gate
from trellis.core.kind import Leaf, NodeKind
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store.tables import nodes

SHELVES: Final = NodeKind(
    name="shelves",
    singular="shelf",
    title="Shelves",
    application="Library",
    path="/library/shelves",
    doc="Where books stand.",
    code="Z998",
    tree=True,
    fields=(Field("place", Choice({"open": "On the wall.", "locked": "In a box."}), "Where it is.", default="open"),),
    leaf=Leaf("place", "locked", "a locked shelf", "locked shelves"),
)


@pytest.fixture
def gate(settings: Settings, clock: Clock) -> Iterator[Gate]:
    gate = compose(settings, (*KINDS, SHELVES), clock)
    yield gate
    gate.store.close()


@pytest.fixture
def run(gate: Gate) -> Run:
    return runner(gate)


@pytest.fixture
def locked(run: Run) -> int:
    return int(run("shelves.create", name="Locked", place="locked")["id"])


def refuse(run: Run, operation: str, target: int | None = None, **raw: object) -> Refused:
    with pytest.raises(Refused) as refused:
        run(operation, target, **raw)
    return refused.value


def test_nothing_is_created_under_one(run: Run, locked: int) -> None:
    (fault,) = refuse(run, "shelves.create", name="More", parentId=locked).faults
    assert (fault.field, fault.message) == ("parentId", "INVALID_PARENT")
    assert fault.detail == f"parentId: shelf {locked} is a locked shelf, and locked shelves cannot have children."


def test_one_with_children_does_not_become_one(run: Run) -> None:
    shelf = run("shelves.create", name="Open")["id"]
    run("shelves.create", name="More", parentId=shelf)
    (fault,) = refuse(run, "shelves.update", shelf, place="locked").faults
    assert (fault.field, fault.message) == ("place", "INVALID_VALUE")
    assert fault.detail == "place locked allows no children, but this shelf has 1: move or delete them first."


def test_children_are_not_moved_to_one(run: Run, locked: int) -> None:
    shelf = run("shelves.create", name="Open")["id"]
    run("shelves.create", name="More", parentId=shelf)
    detail = refuse(run, "shelves.delete", shelf, deleteChildrenOrMove=locked).detail
    assert f"shelf {locked} is a locked shelf and cannot have children" in detail


def test_nothing_goes_back_under_one(run: Run) -> None:
    shelf = run("shelves.create", name="Open")["id"]
    below = run("shelves.create", name="More", parentId=shelf)["id"]
    run("shelves.delete", below)
    deleted = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    run("shelves.update", shelf, place="locked")
    detail = refuse(run, "events.restore", deleted).detail
    assert f"shelf {shelf} is a locked shelf, and locked shelves cannot have children" in detail


def test_one_with_children_does_not_become_one_again(run: Run, locked: int) -> None:
    run("shelves.update", locked, place="open")
    opened = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    run("shelves.create", name="More", parentId=locked)
    assert refuse(run, "events.restore", opened).detail.startswith(
        "Before the event it was a locked shelf, which cannot have children, but now it has 1"
    )


def test_a_child_of_one_is_found_by_the_check(run: Run, gate: Gate, locked: int) -> None:
    shelf = run("shelves.create", name="Open")["id"]
    below = run("shelves.create", name="More", parentId=shelf)["id"]
    under = sa.update(nodes).where(nodes.c.kind == "shelves", nodes.c.id == below).values(parent_id=locked, block_offset=0)
    gate.store.write(lambda tx: tx.connection.execute(under)).result()
    assert any("a locked shelf, which cannot have children" in problem["detail"] for problem in run("check.list")["problems"])
