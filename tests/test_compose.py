"""The composition root: the house stands before there is a database, and a new kind needs no more than its declaration."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.community import GRANTABLE, MEMBERS
from tests.conftest import runner, settings_for
from tests.fixture_types import Run
from trellis.compose import compose
from trellis.core.fields import Boolean, Field, Integer
from trellis.core.gate import Gate
from trellis.core.kind import NodeKind
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings

BLOCKS = NodeKind(
    name="shelves",
    singular="shelf",
    title="Shelves",
    application="Library",
    path="/library/shelves",
    doc="Where books stand.",
    code="Z999",
    fields=(
        Field("boards", Integer(1), "How many boards it has.", default=5, listed=True),
        Field("oak", Boolean(), "Whether it is of oak.", default=False, listed=True),
    ),
    options={"view": "See it.", "borrow": "Take a book."},
    tree=True,
)


@pytest.fixture
def library(settings: Settings) -> Iterator[Gate]:
    """A community that has shelves too."""
    gate = compose(settings, (*KINDS, BLOCKS))
    yield gate
    gate.store.close()


def test_the_house_stands_before_there_is_a_database(tmp_path: Path) -> None:
    gate = compose(settings_for(f"sqlite:///{tmp_path}/later/trellis.db"))
    assert len(gate.catalogue.grantable) == GRANTABLE
    assert not (tmp_path / "later" / "trellis.db").exists()
    gate.store.close()


def test_a_kind_is_in_the_house_by_its_declaration_alone(library: Gate) -> None:
    run: Run = runner(library)
    top = run("shelves.create", name="History", permissions={"view": "*", "borrow": [MEMBERS]})
    below = run("shelves.create", name="Rome", parentId=top["id"], boards=2)
    assert (below["path"], below["boards"], below["permissions"]) == ("History > Rome", 2, top["permissions"])
    assert [shelf["name"] for shelf in run("shelves.list", boards=2)["results"]] == ["Rome"]
    assert run("shelves.update", top["id"], boards=7)["boards"] == 7
    with pytest.raises(Refused, match=r"^HAS_CHILDREN"):
        run("shelves.delete", top["id"])
    run("shelves.delete", top["id"], deleteChildrenOrMove=-1)
    assert [event["operation"] for event in run("events.list")["results"]] == [
        *("shelves.create", "shelves.create", "shelves.update", "shelves.delete"),
    ]


def test_a_new_kinds_list_is_filtered_by_fields_of_any_type(library: Gate) -> None:
    run: Run = runner(library)
    for boards, oak in ((2, True), (12, False), (7, True)):
        run("shelves.create", name="A shelf", boards=boards, oak=oak)
    asked: list[dict[str, object]] = [{"boards": 2}, {"boards": 1}, {"oak": True}, {"oak": 0}, {"oak": 1, "boards": "2"}]
    found = [[shelf["boards"] for shelf in run("shelves.list", **filters)["results"]] for filters in asked]
    assert found == [[2], [], [2, 7], [12], [2]]


def test_a_new_kind_can_be_granted_and_loses_deleted_groups_as_the_others_do(library: Gate) -> None:
    run: Run = runner(library)
    granted = run("keys.create", name="Librarian", grants="shelves.*")["grants"]
    assert granted == sorted(o.name for o in library.catalogue.grantable if o.resource == "shelves")
    group = run("groups.create", name="Readers")["id"]
    shelf = run("shelves.create", name="History", permissions={"borrow": [group]})["id"]
    run("groups.delete", group)
    assert run("shelves.get", shelf)["permissions"]["borrow"] == []


def test_a_number_field_of_a_new_kind_keeps_a_number_that_looks_like_a_group(library: Gate) -> None:
    run: Run = runner(library)
    group = run("groups.create", name="Readers")["id"]
    shelf = run("shelves.create", name="History", boards=group)["id"]
    run("groups.delete", group)
    assert run("shelves.get", shelf)["boards"] == group
