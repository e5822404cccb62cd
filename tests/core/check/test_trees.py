"""The check of trees that no operation makes."""

from tests.community import Community
from tests.fixture_types import Run
from tests.node_rows import insert_below
from trellis.core.gate import Gate
from trellis.core.nodes import DEEPEST


def test_the_last_level_that_a_tree_can_have_is_told_where_there_are_more(gate: Gate, run: Run, community: Community) -> None:
    """Such as rows that were written by hand: their records and exports would be refused, without a word of it from the check."""
    first = run("forums.create", name="First")["id"]
    below = insert_below(gate, first, DEEPEST - 1)
    assert run("check.list")["problems"] == []
    deeper = insert_below(gate, below[-1], 2)
    (told,) = run("check.list")["problems"]
    assert (told["resource"], told["id"], told["problem"], told["repairable"]) == ("forums", below[-1], "deep", False)
    assert told["detail"].startswith("there are forums below it, though it is on level 100, the last that a tree can have.")
    run("forums.update", deeper[0], parentId=0)
    assert run("check.list")["problems"] == []
