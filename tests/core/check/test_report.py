"""The check: pure parts. What it finds in a database, and mends, is in tests/cli/test_check.py."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trellis.core.check.report import find_cycles
from trellis.core.check.soundness import examine
from trellis.kinds.forums import FORUMS
from trellis.store.check import StoredNode

NOW = "2026-01-31T09:30:00.000Z"


def test_cycles_begin_with_the_lowest_id_and_go_upwards() -> None:
    assert find_cycles({}) == []
    assert find_cycles({5: 4}) == []
    assert find_cycles({3: 3}) == [(3,)]
    assert find_cycles({7: 5, 5: 9, 9: 7, 8: 7, 4: 8}) == [(5, 9, 7)]
    assert find_cycles({1: 2, 2: 1, 6: 5, 5: 6, 9: 1}) == [(1, 2), (5, 6)]


@given(st.dictionaries(st.integers(1, 12), st.integers(1, 15), max_size=12))
def test_cycles_are_exactly_what_comes_back_to_itself(parents: Mapping[int, int]) -> None:
    in_cycles = [node for cycle in find_cycles(parents) for node in cycle]

    def comes_back(node: int) -> bool:
        at: int | None = parents[node]
        for _ in parents:
            if at == node:
                return True
            at = parents.get(at) if at is not None else None
        return False

    assert sorted(in_cycles) == sorted(node for node in parents if comes_back(node))
    for cycle in find_cycles(parents):
        assert cycle[0] == min(cycle)
        assert all(parents[one] == other for one, other in zip(cycle, (*cycle[1:], cycle[0]), strict=True))


def test_a_node_that_is_sound_is_left_as_it_is() -> None:
    fields = {f.name: f.default for f in FORUMS.fields}
    permissions = {"view": "*", "read": [2, 3], "add": [], "reply": [3], "attachments": "*"}
    stored = StoredNode(5, None, 0, "News", fields, permissions, NOW, NOW, None, None, "news")

    examination = examine(FORUMS, stored, {2, 3})

    assert examination.problems == []
    assert not examination.repairable
    assert not examination.changes
    assert (examination.repaired.fields, examination.repaired.permissions) == (fields, permissions)


def test_permissions_that_many_nodes_have_are_examined_for_each() -> None:
    fields = {f.name: f.default for f in FORUMS.fields}
    nested: list[Any] = []
    for _ in range(300):  # deeper than JSON is written
        nested = [nested]
    permissions = {"view": [3, 9], "read": [3, 3], "add": "nobody", "reply": nested, "attachments": []}
    found = [
        examine(FORUMS, StoredNode(number, None, 0, "News", fields, permissions, NOW, NOW, None, None, "news"), {2, 3})
        for number in (5, 6)
    ]
    assert [[(one.id, one.problem) for one in examination.problems] for examination in found] == [
        [(number, "group"), (number, "permission"), (number, "permission"), (number, "permission")] for number in (5, 6)
    ]
    mended = {"view": [3], "read": [3], "add": [], "reply": [], "attachments": []}
    assert [examination.repaired.permissions for examination in found] == [mended, mended]
