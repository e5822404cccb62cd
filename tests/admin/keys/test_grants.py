"""The grid of grants: from the catalogue alone, ticked by row, column and preset, and said in words."""

from typing import Any

import pytest

from tests.community import GRANTABLE
from tests.test_compose import BLOCKS
from trellis.admin.keys.grants import GrantGrid
from trellis.compose import catalogue_of
from trellis.core.catalogue import Catalogue
from trellis.core.operation import GRANTED, Operation
from trellis.core.verbs import LOOK
from trellis.http.routes import build_routes, find_in_reference
from trellis.kinds import KINDS

GRID = GrantGrid(catalogue_of(KINDS))


def test_every_operation_that_can_be_granted_has_one_box() -> None:
    names = [box.name for box in GRID.boxes]
    assert sorted(names) == sorted(operation.name for operation in catalogue_of(KINDS).grantable)
    assert len(names) == len(set(names)) == GRANTABLE


def test_a_box_stands_only_where_there_is_an_endpoint() -> None:
    there = {row.resource: [box is not None for box in row.boxes] for row in GRID.rows}
    assert there["forums"] == [True] * len(GRID.columns)
    assert there["groups"] == [verb in {"list", "get", "delete"} for verb in GRID.columns]
    assert there["blogs"] == there["groups"]


def test_a_box_tells_method_path_and_reference() -> None:
    box = GRID.find("forums.update")
    assert box is not None
    assert (box.method, box.path, box.reference) == ("POST", "/forums/forums/{id}", "/api/docs/forums#forums.update")
    assert GRID.find("forums.lost") is None


def test_what_one_address_undoes_for_every_kind_has_a_box_for_each() -> None:
    box = GRID.find("forums.restore")
    assert box is not None
    assert (box.method, box.path) == ("POST", "/core/events/{id}/restore")


def test_every_box_links_to_an_entry_that_is_there() -> None:
    entries = {find_in_reference(route.operation) for route in build_routes(catalogue_of(KINDS))}
    assert {box.reference for box in GRID.boxes} <= entries
    assert all(box.method and box.path for box in GRID.boxes)


def test_a_new_kind_and_an_operation_beside_the_nodes_are_in_it() -> None:
    def nothing(_: Any) -> Any:
        raise NotImplementedError

    feed = Operation("events.feed", "Read events", "All.", nothing, access=GRANTED, verb=LOOK, path="/core/events")
    grid = GrantGrid(Catalogue({"all": lambda: [*catalogue_of((*KINDS, BLOCKS)).values(), feed]}))
    assert {row.resource for row in grid.rows} >= {"shelves", "forums"}
    assert ("events.feed", "GET", "/core/events", True) in [(box.name, box.method, box.path, box.reads) for box in grid.others]
    assert len(grid.boxes) == GRANTABLE + len(grid.columns) + 2  # beside the shelves' row: their undo, and the feed


@pytest.mark.parametrize(
    ("button", "before", "after"),
    [
        ("all", [], GRANTABLE),
        ("none", ["forums.list", "blogs.delete"], 0),
        ("read", ["blogs.delete"], len(GRID.reading)),
        ("row:blogs", ["forums.list"], 4),
        ("row:blogs", ["forums.list", "blogs.delete"], 4),
        ("row:blogs", ["forums.list", "blogs.delete", "blogs.get", "blogs.list"], 1),
        ("row:forums", ["forums.list"], len(GRID.columns)),
        ("column:delete", [], len(GRID.ticks["column:delete"])),
        ("column:create", ["forums.create"], len(GRID.ticks["column:create"])),
        ("column:create", sorted(GRID.ticks["column:create"]), 0),
        ("row:lost", ["forums.list"], 1),
        ("", ["forums.list", "made.up"], 1),
    ],
)
def test_a_button_ticks_or_clears(button: str, before: list[str], after: int) -> None:
    assert len(GRID.press(button, before)) == after


@pytest.mark.parametrize(
    ("grants", "words"),
    [
        ([], "Nothing yet"),
        (["made.up"], "Nothing yet"),
        (["forums.create"], "Create a forum"),
        (["forums.create", "forums.list", "blogs.delete"], f"3 of {GRANTABLE} operations"),
        (sorted(GRID.reading), "Read everything"),
        ([f"forums.{verb}" for verb in GRID.columns], "All operations on forums"),
        (sorted(GRID.names), "Everything"),
    ],
)
def test_grants_are_said_in_words(grants: list[str], words: str) -> None:
    assert GRID.describe(grants) == words
