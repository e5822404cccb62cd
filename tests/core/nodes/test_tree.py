"""The arithmetic of trees: places beside siblings, and paths."""

from hypothesis import given
from hypothesis import strategies as st

from trellis.core.nodes.tree import format_path, position_beside


@given(st.integers(2, 12), st.booleans(), st.data())
def test_beside_is_the_place_next_to_the_sibling_once_the_node_has_left(count: int, behind: bool, data: st.DataObject) -> None:
    own = data.draw(st.none() | st.integers(0, count - 1))
    sibling = data.draw(st.integers(0, count - 1).filter(lambda place: place != own))
    siblings = [f"s{place}" for place in range(count) if place != own]
    place = position_beside(sibling, own, behind=behind)
    siblings.insert(place, "me")
    assert siblings.index("me") - siblings.index(f"s{sibling}") == (1 if behind else -1)


def test_a_path_names_everything_from_the_top_down() -> None:
    line = {1: (None, "News"), 2: (1, "Releases"), 3: (2, "Betas"), 9: (None, "Help")}
    assert format_path(3, line) == "News > Releases > Betas"
    assert format_path(9, line) == "Help"


def test_a_path_through_a_broken_tree_comes_to_an_end() -> None:
    assert format_path(1, {1: (2, "A"), 2: (1, "B")}).count(">") <= 3
