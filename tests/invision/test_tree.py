"""The nodes of an old community as trees, whatever their parents are."""

from hypothesis import given
from hypothesis import strategies as st

from trellis.core.structure import DEEPEST
from trellis.invision.tree import OldNode, arrange, walk
from trellis.kinds.forums import FORUMS

PARENTS: st.SearchStrategy[list[object]] = st.lists(
    st.one_of(st.integers(-1, 15), st.sampled_from([None, "", "3", "x", "-1", [], {}, 1.5, True])), max_size=15
)


def make(parents: list[object]) -> list[OldNode]:
    return [OldNode(FORUMS, number, f"Forum {number}", {"parentId": parent}) for number, parent in enumerate(parents, 1)]


@given(PARENTS)
def test_each_node_has_one_place_and_every_place_is_below_a_parent(parents: list[object]) -> None:
    nodes = make(parents)
    found = [*walk(arrange(nodes))]
    assert sorted(node.id for node in found) == [node.id for node in nodes]
    for node in found:
        assert node.parent is None or (node in node.parent.children and found.index(node.parent) < found.index(node))
        told = node.record["parentId"]
        if node.parent is not None:
            assert node.parent.id == int(told)
        assert node.closed == (node.parent is None and told not in (None, "", 0, -1, "-1"))
        assert bool(node.notes) == node.closed


@given(st.integers(1, 3 * DEEPEST))
def test_no_node_is_deeper_than_a_document_can_have_it(count: int) -> None:
    nodes = make([number - 1 for number in range(1, count + 1)])
    found = [*walk(arrange(nodes))]
    assert len(found) == count
    assert max(len(node.path) for node in found) == min(count, DEEPEST)
    assert [bool(node.notes) for node in nodes] == [node.id > DEEPEST for node in nodes]
