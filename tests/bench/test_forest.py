"""The forums that are measured: sound trees, as many as asked for, with the landmarks where they are said to be."""

from typing import get_args

import pytest

from bench.forest import DEPTH, RARE, SHAPES, Shape, forest
from bench.seed import fill
from tests.fixture_types import Run
from trellis.core.gate import Gate


@pytest.fixture(params=get_args(Shape))
def shape(request: pytest.FixtureRequest) -> Shape:
    """Every shape."""
    found: Shape = request.param
    return found


@pytest.mark.parametrize("count", [1000, 5000])
def test_a_forest_has_parents_before_children_and_dense_places(shape: Shape, count: int) -> None:
    forums = list(forest(shape, count)[0])
    children: dict[int | None, list[int]] = {}
    for number, forum in enumerate(forums, 1):
        assert forum.id == number
        assert forum.parent_id is None or forum.parent_id < number
        children.setdefault(forum.parent_id, []).append(forum.position)
    assert len(forums) == count
    assert all(places == list(range(len(places))) for places in children.values())
    assert sum(RARE in forum.name for forum in forums) == 5


def test_landmarks_are_where_they_are_said_to_be(shape: Shape) -> None:
    forums, marks = forest(shape, 2000)
    parents = {forum.id: forum.parent_id for forum in forums}

    def line(node: int | None) -> list[int]:
        return [] if node is None else [node, *line(parents[node])]

    assert len(line(marks.deepest)) == DEPTH
    for top in marks.subtrees:
        assert sum(top in line(node) for node in parents) == 20


def test_what_is_filled_in_bulk_is_sound(gate: Gate, run: Run) -> None:
    told: list[int] = []
    assert fill(gate, forest("realistic", 1000)[0], told.append) == 1000
    assert told[-1] == 1000
    assert run("check.list")["problems"] == []
    assert run("forums.list", search=RARE)["totalResults"] == 5
    assert run("forums.create", name="Next")["id"] == 1001


def test_every_shape_is_described() -> None:
    assert set(SHAPES) == set(get_args(Shape))
