"""Finding nodes: by exact name, by external ids, below another one, by several types; as a tree; and putting them in order."""

from typing import Any

import pytest

from tests.database_state import DatabaseState
from tests.fixture_types import Run
from tests.node_rows import insert_below
from trellis.core.gate import Gate
from trellis.errors import Refused


@pytest.fixture
def forums(run: Run) -> dict[str, int]:
    """A > B > C, A > D, E; D is a question forum, E a category."""
    found: dict[str, int] = {}
    for name, parent, more in (
        ("A", None, {"externalId": "a"}),
        ("B", "A", {}),
        ("C", "B", {"externalId": "c"}),
        ("D", "A", {"type": "questions"}),
        ("E", None, {"type": "category"}),
    ):
        found[name] = run("forums.create", name=name, parentId=found.get(parent or ""), **more)["id"]
    return found


def names(run: Run, **query: Any) -> list[str]:
    page = run("forums.list", **query)
    assert page["totalResults"] == len(page["results"])
    return [one["name"] for one in page["results"]]


@pytest.mark.usefixtures("forums")
def test_a_name_is_found_exactly(run: Run) -> None:
    run("forums.create", name="a")
    run("forums.create", name="A b")
    assert names(run, name="A") == ["A"]
    assert names(run, name="a") == ["a"]
    assert names(run, name="nobody") == []
    assert names(run, name="A", sortBy="name", type="discussions") == ["A"]


@pytest.mark.usefixtures("forums")
def test_external_ids_are_found(run: Run) -> None:
    assert names(run, externalIds="c,a,nowhere") == ["A", "C"]
    assert names(run, externalIds=["c"], sortBy="position") == ["C"]
    assert names(run, externalIds="") == []


def test_everything_below_a_node_is_found(run: Run, forums: dict[str, int]) -> None:
    assert names(run, under=forums["A"]) == ["B", "C", "D"]
    assert names(run, under=forums["A"], type="questions") == ["D"]
    assert names(run, under=forums["A"], search="c", sortBy="name", sortDir="desc") == ["C"]
    assert names(run, under=999) == []
    run("forums.update", forums["B"], parentId=None)
    assert names(run, under=forums["A"]) == ["D"]


@pytest.mark.usefixtures("forums")
def test_several_types_are_found(run: Run) -> None:
    assert names(run, type="questions,category") == ["D", "E"]
    assert names(run, type=["qa"]) == ["D"]
    assert names(run, type="questions,category") == ["D", "E"]
    run("forums.create", name="F", type="questions")
    assert names(run, type="questions,category") == ["D", "E", "F"]
    for wrong in ("", "questions,nothing"):
        with pytest.raises(Refused, match="INVALID_TYPE"):
            names(run, type=wrong)


@pytest.mark.usefixtures("forums")
def test_children_are_counted_where_that_is_asked_for(run: Run) -> None:
    counted = run("forums.list", include="childCount")["results"]
    assert {one["name"]: one["childCount"] for one in counted} == {"A": 2, "B": 1, "C": 0, "D": 0, "E": 0}
    assert "childCount" not in run("forums.list")["results"][0]


def outline(tree: dict[str, Any]) -> list[Any]:
    return [(one["name"], outline(one)) for one in tree["children"]]


def test_the_tree_is_read_at_once(run: Run, forums: dict[str, int]) -> None:
    run("forums.update", forums["D"], position=0)
    tree = run("forums.tree")
    assert outline(tree) == [("A", [("D", []), ("B", [("C", [])])]), ("E", [])]
    assert (tree["root"], tree["total"]) == (None, 5)
    deep = tree["children"][0]["children"][1]["children"][0]
    assert {name: value for name, value in deep.items() if name != "children"} == run("forums.get", forums["C"])


def test_a_part_of_the_tree_is_read(run: Run, forums: dict[str, int]) -> None:
    assert outline(run("forums.tree", depth=1)) == [("A", []), ("E", [])]
    below = run("forums.tree", root=forums["B"])
    assert (below["root"], outline(below)) == (forums["B"], [("C", [])])
    assert below["children"][0]["path"] == "A > B > C"
    with pytest.raises(Refused, match="INVALID_ID"):
        run("forums.tree", root=999)


def test_a_tree_that_is_too_large_asks_for_a_part(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.core.nodes.outline._MOST_IN_TREE", 2)
    first = run("forums.create", name="A")["id"]
    run("forums.create", name="B", parentId=first)
    assert run("forums.tree")["total"] == 2
    run("forums.create", name="C")
    with pytest.raises(Refused, match="TREE_TOO_LARGE"):
        run("forums.tree")
    assert run("forums.tree", root=first)["total"] == 1


def test_a_tree_that_is_too_deep_asks_for_a_part(gate: Gate, run: Run) -> None:
    chain: list[int] = []
    for level in range(100):
        chain.append(run("forums.create", name=f"Level {level}", parentId=chain[-1] if chain else None)["id"])
    insert_below(gate, chain[-1], 1)  # as it may be from before there was a limit
    with pytest.raises(Refused, match="TREE_TOO_LARGE"):
        run("forums.tree")
    assert run("forums.tree", depth=100)["total"] == 100
    assert run("forums.tree", root=chain[0])["total"] == 100


def test_siblings_are_put_in_order(run: Run, database: DatabaseState) -> None:
    ids = [run("calendars.create", name=f"Calendar {number}")["id"] for number in range(5)]

    def order() -> list[int]:
        return [one["id"] for one in run("calendars.list", sortBy="position")["results"]]

    with database.new_events() as events:
        assert run("calendars.order", ids=[ids[4], ids[0], ids[2]])["moved"] == 2
    assert order() == [ids[4], ids[0], ids[2], ids[1], ids[3]]
    assert {event["type"] for event in events()} == {"calendar.moved"}
    with database.unchanged():
        assert run("calendars.order", ids=[ids[4], ids[0]])["moved"] == 0
        run("calendars.order", ids=ids, dryRun=True)
    run("calendars.order", ids=ids)
    assert order() == ids


@pytest.mark.parametrize("wrong", [[1, 1], [], [999], "", [0]])
def test_an_order_of_what_are_no_siblings_is_refused(run: Run, wrong: Any, database: DatabaseState) -> None:
    run("forums.create", name="A")
    with database.unchanged(), pytest.raises(Refused, match="INVALID"):
        run("forums.order", ids=wrong)


def test_children_of_another_parent_are_refused(run: Run, forums: dict[str, int], database: DatabaseState) -> None:
    with database.unchanged(), pytest.raises(Refused, match="INVALID_POSITION"):
        run("forums.order", parentId=forums["A"], ids=[forums["D"], forums["C"]])
    run("forums.order", parentExternalId="a", ids=[forums["D"], forums["B"]])
    assert outline(run("forums.tree", root=forums["A"], depth=1)) == [("D", []), ("B", [])]
