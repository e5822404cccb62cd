"""The arithmetic of trees against a plain list of lists: places stay dense, and everything else keeps its order."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.core.tree import Shift, beside, entering, leaving, makes_cycle, moving, path_of, slot

counts = st.integers(0, 12)


def shifted(places: Mapping[str, int], shifts: list[Shift]) -> dict[str, int]:
    """Carry shifts out on siblings under parent 1, all at once from the places before, as the store does one by one."""
    now = dict(places)
    for shift in shifts:
        assert shift.parent == 1
        now = {node: place + shift.by * (shift.first <= place <= shift.last) for node, place in now.items()}
    return now


def row(count: int) -> dict[str, int]:
    return {f"s{place}": place for place in range(count)}


def in_order(places: Mapping[str, int]) -> list[str]:
    assert sorted(places.values()) == list(range(len(places))), "the order is not dense"
    return sorted(places, key=lambda node: places[node])


@given(counts, st.none() | st.integers(0, 20))
def test_a_node_that_enters_gets_the_place_it_wants_or_the_last(count: int, wanted: int | None) -> None:
    place = slot(wanted, count)
    after = shifted(row(count), entering(1, place, count)) | {"new": place}
    expected = list(row(count))
    expected.insert(count if wanted is None else wanted, "new")
    assert in_order(after) == expected


@given(st.integers(1, 12), st.data())
def test_a_node_that_leaves_leaves_no_gap(count: int, data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, count - 1))
    places = row(count)
    del places[f"s{gone}"]
    assert in_order(shifted(places, leaving(1, gone, count))) == [node for node in row(count) if node != f"s{gone}"]


@given(st.integers(1, 12), st.data())
def test_a_node_that_moves_within_its_row_passes_those_between(count: int, data: st.DataObject) -> None:
    old, new = (data.draw(st.integers(0, count - 1)) for _ in range(2))
    others = row(count)
    del others[f"s{old}"]
    after = shifted(others, moving(1, old, new)) | {f"s{old}": new}
    expected = [node for node in row(count) if node != f"s{old}"]
    expected.insert(new, f"s{old}")
    assert in_order(after) == expected


@given(st.integers(1, 12), st.data())
def test_as_few_siblings_as_possible_make_way(count: int, data: st.DataObject) -> None:
    old, new = (data.draw(st.integers(0, count - 1)) for _ in range(2))
    assert sum(shift.last - shift.first + 1 for shift in moving(1, old, new)) == abs(old - new)


@given(st.integers(2, 12), st.booleans(), st.data())
def test_beside_is_the_place_next_to_the_sibling_once_the_node_has_left(count: int, behind: bool, data: st.DataObject) -> None:
    own = data.draw(st.none() | st.integers(0, count - 1))
    sibling = data.draw(st.integers(0, count - 1).filter(lambda place: place != own))
    siblings = [f"s{place}" for place in range(count) if place != own]
    place = beside(sibling, own, behind=behind)
    siblings.insert(place, "me")
    assert siblings.index("me") - siblings.index(f"s{sibling}") == (1 if behind else -1)


def test_entering_last_and_leaving_last_move_nobody() -> None:
    assert entering(None, 3, 3) == []
    assert leaving(None, 2, 3) == []
    assert moving(None, 1, 1) == []


@pytest.mark.parametrize(("node", "line", "cycle"), [(1, (1,), True), (1, (3, 2, 1), True), (1, (3, 2), False), (1, (), False)])
def test_a_node_cannot_go_under_itself_or_what_is_below_it(node: int, line: tuple[int, ...], cycle: bool) -> None:
    assert makes_cycle(node, line) is cycle


def test_a_path_names_everything_from_the_top_down() -> None:
    line = {1: (None, "News"), 2: (1, "Releases"), 3: (2, "Betas"), 9: (None, "Help")}
    assert path_of(3, line) == "News > Releases > Betas"
    assert path_of(9, line) == "Help"


def test_a_path_through_a_broken_tree_comes_to_an_end() -> None:
    assert path_of(1, {1: (2, "A"), 2: (1, "B")}).count(">") <= 3
