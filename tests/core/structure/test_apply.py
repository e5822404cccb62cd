"""Planning and applying structure documents: what is created, changed, moved, adopted, kept and deleted."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Events, Run
from tests.statement_meter import StatementMeter
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.core.structure import export, matching
from trellis.errors import Refused
from trellis.store import events
from trellis.store.tables import signing_keys

Entries = list[dict[str, Any]]


def document(name: str = "site", **sections: Any) -> dict[str, Any]:
    return {"format": "trellis/1", "name": name, **sections}


def node(external_id: str, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"externalId": external_id, "name": external_id.title(), **more, **({"children": list(children)} if children else {})}


def apply(gate: Gate, wanted: dict[str, Any], **options: Any) -> Result:
    return gate.run(Call("structure.apply", TERMINAL, {"document": wanted, **options}))


def actions(value: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(change["action"], change["resource"], change["path"]) for change in value["changes"]]


def refuse(run: Run, operation: str = "structure.apply", /, **raw: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        run(operation, **raw)
    return refused.value


def tree(run: Run, kind: str = "forums") -> Any:
    def names(records: Entries) -> Any:
        return [record["name"] if not record["children"] else (record["name"], names(record["children"])) for record in records]

    return names(run(f"{kind}.tree")["children"])


def timeless(value: Any) -> Any:
    """Leave out when records were changed last: undoing is a change."""
    if isinstance(value, dict):
        return {name: timeless(below) for name, below in value.items() if name != "updatedAt"}
    return [timeless(below) for below in value] if isinstance(value, list) else value


def test_a_document_makes_a_community(gate: Gate, run: Run, events: Events) -> None:
    wanted = document(
        groups=[node("mods")],
        forums=[
            node("news", node("archive"), permissions={"view": "*", "add": ["mods", "members"]}),
            node("talk", type="category"),
        ],
        calendars=[node("meetings", color="#FF0000")],
        blogs=[node("diary", groups=["mods"])],
    )
    done = apply(gate, wanted)
    assert done.value["counts"] == {"create": 6, "update": 0, "move": 0, "delete": 0}
    assert tree(run) == [("News", ["Archive"]), "Talk"]
    (group,) = [record["id"] for record in run("groups.list")["results"] if record["externalId"] == "mods"]
    news = run("forums.get_external", externalId="news")
    assert news["permissions"] == {"view": "*", "read": [], "add": [3, group], "reply": [], "attachments": []}
    assert (news["managedBy"], news["externalId"]) == ("site", "news")
    assert run("blogs.list")["results"][0]["groups"] == [group]
    assert {event["changeSet"] for event in events()} == {done.change_set}
    assert [event["operation"] for event in events()][:2] == ["groups.create", "forums.create"]


def test_a_plan_shows_differences_by_member_and_changes_nothing(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document(forums=[node("news", permissions={"view": "*"}), node("talk")]))
    with database.unchanged():
        plan = run(
            "structure.plan",
            document=document(forums=[node("news", name="Bulletin", permissions={"view": ["guests"]}), node("talk", node("new"))]),
        )
    update, create = plan["changes"]
    assert update["differences"] == [
        {"member": "name", "before": "News", "after": "Bulletin"},
        {"member": "permissions.view", "before": "*", "after": [2]},
    ]
    assert (create["action"], create["path"]) == ("create", "Talk > New")


def test_what_is_not_named_stays_as_it_is(run: Run) -> None:
    run("forums.create", name="Old", externalId="news", description="<p>Hello.</p>", permissions={"view": "*"}, theme=3)
    run("structure.apply", document=document(forums=[node("news")]))
    news = run("forums.get_external", externalId="news")
    assert (news["name"], news["description"], news["theme"], news["permissions"]["view"]) == ("News", "<p>Hello.</p>", 3, "*")


def test_order_is_the_document_s_and_others_stay_behind_in_their_own(run: Run) -> None:
    for name in ("x", "b", "y", "a", "z"):
        run("forums.create", name=name, externalId=name)
    done = run("structure.apply", document=document(forums=[node("a", name="a"), node("c", name="c"), node("b", name="b")]))
    assert tree(run) == ["a", "c", "b", "x", "y", "z"]
    assert done["keptCount"] == 3
    assert [kept["name"] for kept in done["kept"]] == ["x", "y", "z"]


def test_one_that_comes_first_is_one_move(run: Run) -> None:
    names = [f"n{number}" for number in range(30)]
    run("structure.apply", document=document(forums=[node(name) for name in names]))
    done = run("structure.apply", document=document(forums=[node(name) for name in [*names[1:], names[0]]]))
    assert actions(done) == [("move", "forums", "N0")]


def test_many_new_ones_come_where_the_document_has_them(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document(forums=[node(f"old-{n}") for n in range(40)]))
    run("forums.create", name="Unmanaged", position=20)
    entries = [node(f"new-{n}", node(f"below-{n}")) for n in range(60)] + [node(f"old-{n}") for n in range(20)]
    entries += [node(f"middle-{n}") for n in range(30)] + [node(f"old-{n}") for n in range(20, 40)] + [node("last")]
    run("structure.apply", document=document(forums=entries))
    shown = [(entry["name"], [entry["children"][0]["name"]]) if "children" in entry else entry["name"] for entry in entries]
    assert tree(run) == [*shown, "Unmanaged"]
    assert run("structure.plan", document=document(forums=entries))["changes"] == []
    assert run("check.list")["problems"] == []


def test_work_on_the_tree_does_not_grow_with_the_number_of_new_nodes(run: Run) -> None:
    run("structure.apply", document=document(calendars=[node(f"old-{n}") for n in range(100)]))
    with StatementMeter() as few:
        run("structure.apply", document=document(calendars=[node(f"few-{n}") for n in range(10)]))
    with StatementMeter() as many:
        run("structure.apply", document=document(calendars=[node(f"many-{n}") for n in range(60)]))
    assert many.count < 2 * few.count + 30  # of 50 more nodes


def test_work_on_the_tree_does_not_grow_with_the_number_that_change_places(run: Run) -> None:
    counts: list[int] = []
    for size in (5, 25):
        entries = [node(f"{size}-{n}") for n in range(size)]
        run("structure.apply", document=document(str(size), forums=entries))
        with StatementMeter() as meter:
            done = run("structure.apply", document=document(str(size), forums=entries[::-1]))
        assert len(done["changes"]) == size - 1
        counts.append(meter.count)
    assert counts[1] < counts[0] + 10  # of 20 more nodes


def test_work_does_not_grow_with_the_number_that_are_changed_taken_over_and_moved(run: Run) -> None:
    counts: list[int] = []
    for size in (5, 25):
        names = [f"{size}-{n}" for n in range(size)]
        below = [node(f"below-{name}", name="Was") for name in names]
        run("structure.apply", document=document(f"first {size}", forums=[node(f"top-{size}", *below)]))
        moved = [node(name, node(f"below-{name}", name="Is", permissions={"view": "*"})) for name in names]
        run("structure.apply", document=document(f"first {size}", forums=[node(name) for name in names]))
        with StatementMeter() as meter:
            done = run("structure.apply", document=document(f"last {size}", forums=moved), adopt=True)
        assert done["counts"] == {"create": 0, "update": 2 * size, "move": 0, "delete": 0}
        counts.append(meter.count)
    assert counts[1] < counts[0] + 3 * 40  # of 40 more changes, half of which each go below another parent
    assert run("check.list")["problems"] == []


def test_work_does_not_grow_with_the_number_that_go_below_each_other(run: Run) -> None:
    counts: list[tuple[int, ...]] = []
    for size in (10, 40):
        forums = [node(f"{size}-{n}") for n in range(size)]
        run("structure.apply", document=document(str(size), forums=forums))
        own: list[int] = []
        for down in (forums, forums[::-1]):
            wanted: list[dict[str, Any]] = []
            for one in reversed(down):
                wanted = [one | {"children": wanted}]
            with StatementMeter() as meter:
                done = run("structure.apply", document=document(str(size), forums=wanted))
            assert run("structure.plan", document=document(str(size), forums=wanted))["changes"] == []
            assert done["counts"] == {"create": 0, "update": 0, "move": len(done["changes"]), "delete": 0}
            own.append(meter.count)
        counts.append(tuple(own))
    assert all(many < few + 10 for few, many in zip(*counts, strict=True)), counts  # of 30 more nodes
    assert run("check.list")["problems"] == []


def test_what_is_deleted_together_comes_back_where_it_was(gate: Gate, run: Run, events: Events) -> None:
    entries = [node(f"n-{n}", *([node(f"below-{n}")] if n % 7 == 0 else [])) for n in range(40)]
    run("structure.apply", document=document(forums=entries))
    before = timeless(run("forums.tree"))
    done = gate.run(
        Call("structure.apply", TERMINAL, {"document": document(forums=entries[20:22]), "prune": True, "maxDeletes": 50})
    )
    assert tree(run) == ["N-20", ("N-21", ["Below-21"])]
    assert done.value["counts"]["delete"] == 38
    assert [event["operation"] for event in events()][-38:] == ["forums.delete"] * 38
    assert {len(event["touched"]) for event in events()[-38:]} == {0, 1}
    gate.run(Call("changesets.restore", TERMINAL, {}, done.change_set))
    assert timeless(run("forums.tree")) == before
    assert run("check.list")["problems"] == []


def test_each_of_many_new_ones_that_is_refused_is_told_with_its_place(run: Run, database: DatabaseState) -> None:
    entries = [node(f"new-{n}") for n in range(9)]
    entries[3]["type"] = entries[6]["type"] = "redirect"  # which needs an address
    with database.unchanged():
        refused = refuse(run, document=document(forums=entries))
    assert [fault.field for fault in refused.faults] == ["forums[3]", "forums[6]"]


def test_work_for_one_that_is_refused_does_not_grow_with_the_number_of_new_nodes(run: Run) -> None:
    counts: list[int] = []
    for size in (200, 300):
        entries = [node(f"new-{n}") for n in range(size)]
        entries[120]["color"] = "none"
        with StatementMeter() as meter:
            assert [fault.field for fault in refuse(run, document=document(calendars=entries)).faults] == ["calendars[120].color"]
        counts.append(meter.count)
    assert counts[1] < counts[0] + 30  # for 100 more nodes


def test_each_of_many_changes_that_is_refused_is_told_with_its_place(run: Run, database: DatabaseState) -> None:
    entries = [node(f"node-{n}") for n in range(9)]
    run("structure.apply", document=document(forums=entries))
    changed = [entry | {"name": "New"} for entry in entries]
    changed[3]["type"] = changed[6]["type"] = "redirect"  # which needs an address
    with database.unchanged():
        refused = refuse(run, document=document(forums=changed))
    assert [fault.field for fault in refused.faults] == ["forums[3]", "forums[6]"]


def test_parents_and_children_change_places(run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a", node("b", node("c")))]))
    done = run("structure.apply", document=document(forums=[node("c", node("b", node("a")))]))
    assert tree(run) == [("C", [("B", ["A"])])]
    assert done["counts"] == {"create": 0, "update": 0, "move": 3, "delete": 0}


def test_one_with_children_becomes_a_redirect_when_they_have_gone(run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a", node("b"), node("c"))]))
    redirect = node("a", type="redirect", redirectUrl="https://example.org/")
    run("structure.apply", document=document(forums=[redirect, node("b")]), prune=True)
    assert tree(run) == ["A", "B"]


def test_deleting_is_asked_for_and_bounded(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document(forums=[node("a", *(node(f"a{number}") for number in range(11))), node("b")]))
    kept = run("structure.apply", document=document(forums=[node("b")]))
    assert (kept["keptCount"], actions(kept)) == (12, [("move", "forums", "B")])
    with database.unchanged():
        refused = refuse(run, document=document(forums=[node("b")]), prune=True)
    assert (refused.message, refused.facts["deletes"]) == ("TOO_MANY_DELETES", 12)
    assert "forum 'A'" in refused.detail
    done = run("structure.apply", document=document(forums=[node("b")]), prune=True, maxDeletes=12)
    assert (done["deletes"], [change["deleted"] for change in done["changes"]]) == (12, [12])
    assert tree(run) == ["B"]


@pytest.mark.parametrize("empty", [{}, {"forums": []}, {"forums": None}, {"groups": [node("g")], "forums": []}])
def test_what_is_empty_is_refused_unless_it_is_allowed(run: Run, database: DatabaseState, empty: dict[str, Any]) -> None:
    run("structure.apply", document=document(forums=[node("a")]))
    with database.unchanged():
        assert refuse(run, document=document(**empty), prune=True).message == "EMPTY_DOCUMENT"
    done = run("structure.apply", document=document(**empty), prune=True, allowEmpty=True)
    assert done["deletes"] == ("forums" in empty)


def test_sections_that_are_not_there_are_not_touched(run: Run) -> None:
    run("calendars.create", name="C")
    run("structure.apply", document=document(forums=[node("a")]), prune=True)
    assert run("calendars.list")["totalResults"] == 1


def test_a_part_below_one_node(run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a", node("b"), node("c")), node("d")]))
    part = document("site", under="a", forums=[node("c"), node("d"), node("e")])
    done = run("structure.apply", document=part, prune=True)
    assert tree(run) == [("A", ["C", "D", "E"])]
    assert done["counts"] == {"create": 1, "update": 0, "move": 1, "delete": 1}


def test_what_moves_from_one_part_to_another_is_moved(gate: Gate, run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a", node("x"), node("b")), node("c", node("d"), node("e"), node("f"))]))
    moved = run("forums.get_external", externalId="e")["id"]
    parts = [
        document(under="c", forums=[node("f"), node("d")]),
        document(under="a", forums=[node("x"), node("e"), node("b")]),
    ]
    for prune in (True, False):
        plan = run("structure.plan", document=parts, prune=prune)
        assert (plan["deletes"], plan["keptCount"]) == (0, 0)
    done = gate.run(Call("structure.apply", TERMINAL, {"document": parts, "prune": True}))
    assert done.value["counts"] == {"create": 0, "update": 0, "move": 2, "delete": 0}
    assert tree(run) == [("A", ["X", "E", "B"]), ("C", ["F", "D"])]
    assert run("forums.get_external", externalId="e")["id"] == moved


def test_a_part_below_another_part_keeps_what_it_has(gate: Gate, run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a", node("b", node("c"), node("d")), node("e"))]))
    parts = [document(under="a", forums=[node("b"), node("e")]), document(under="b", forums=[node("d"), node("c")])]
    for wanted in (parts, parts[::-1]):
        done = gate.run(Call("structure.apply", TERMINAL, {"document": wanted, "prune": True}))
        assert (done.value["deletes"], done.value["keptCount"]) == (0, 0)
        assert tree(run) == [("A", [("B", ["D", "C"]), "E"])]


def test_a_part_below_what_would_be_deleted_is_refused(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document(forums=[node("a", node("b"))]))
    parts = [document(under="a", forums=[node("c")]), document(under="b", forums=[node("d")])]
    with database.unchanged():
        assert "'b' would be deleted" in refuse(run, document=parts, prune=True).detail


def test_two_parts_do_not_adopt_the_same_node(gate: Gate, run: Run) -> None:
    top = run("forums.create", name="Top", externalId="top")["id"]
    below = run("forums.create", name="B", externalId="b", parentId=top)["id"]
    run("forums.create", name="C", parentId=below)
    parts = [document(under="top", forums=[node("b", node("one", name="C"))]), document(under="b", forums=[node("two", name="C")])]
    gate.run(Call("structure.apply", TERMINAL, {"document": parts, "adopt": True}))
    assert [(one["externalId"], one["name"]) for one in run("forums.list", parentId=below)["results"]] == [
        ("one", "C"),
        ("two", "C"),
    ]


def test_what_comes_into_a_part_comes_with_what_is_below_it(gate: Gate, run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a"), node("d", node("z", node("w")))]))
    run("forums.create", name="V", parentId=run("forums.get_external", externalId="d")["id"])
    part = document(under="a", forums=[node("d", node("y"), node("v"))])
    plan = run("structure.plan", document=part, prune=True)
    assert (plan["deletes"], plan["adoptable"]) == (3, 1)
    apply(gate, part, adopt=True)
    assert tree(run) == [("A", [("D", ["Y", "V", ("Z", ["W"])])])]
    assert run("structure.plan", document=part)["changes"] == []
    part = document(forums=[node("a"), node("d", node("z", node("w")))])
    apply(gate, part, prune=True)
    part = document(under="a", forums=[node("d", node("y"))])
    assert apply(gate, part, prune=True).value["deletes"] == 2
    assert tree(run) == [("A", [("D", ["Y"])])]
    assert run("structure.plan", document=part, prune=True)["changes"] == []


def test_what_is_above_a_part_cannot_be_in_it(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document(forums=[node("a", node("b"), node("c"))]))
    part = document(under="b", forums=[node("a", node("x"), node("c"), node("y"))])
    with database.unchanged():
        refused = refuse(run, document=part)
    assert refused.message == "INVALID_DOCUMENT"
    assert "which is below it" in refused.faults[0].detail


@pytest.mark.parametrize("prune", [False, True])
def test_what_was_above_a_part_comes_below_it_if_another_part_moves_it_away(run: Run, prune: bool) -> None:
    run(
        "structure.apply", document=document(forums=[node("top"), node("a", node("m", node("b", node("e"))), node("c"), node("d"))])
    )
    parts = [
        document(under="top", forums=[node("b")]),
        document(under="b", forums=[node("e"), node("a", node("x"), node("d"), node("y"), node("c"))]),
    ]
    plan = run("structure.plan", document=parts, prune=prune)
    assert run("structure.apply", document=parts, prune=prune, plan=plan["plan"])["deletes"] == int(prune)
    below = ["X", "D", "Y", "C"] if prune else ["X", "D", "Y", "C", "M"]
    assert tree(run) == [("Top", [("B", ["E", ("A", below)])])]
    assert run("structure.plan", document=parts, prune=prune)["changes"] == []


def test_work_does_not_grow_with_the_number_that_come_into_a_part(run: Run) -> None:
    counts: list[int] = []
    for size in (5, 30):
        names = [f"{size}-{n}" for n in range(size)]
        tops = [node(name, node(f"below-{name}", node(f"last-{name}"))) for name in names]
        run("structure.apply", document=document(f"all {size}", forums=[node(f"part-{size}"), *tops]))
        with StatementMeter() as meter:
            plan = run("structure.plan", document=document(f"all {size}", under=f"part-{size}", forums=[*map(node, names)]))
        assert (plan["counts"], plan["keptCount"]) == ({"create": 0, "update": 0, "move": size, "delete": 0}, 2 * size)
        counts.append(meter.count)
    assert counts[1] < counts[0] + 12  # of 25 more nodes, which are moved together


@pytest.mark.parametrize("deepest_first", [True, False])
def test_what_comes_into_a_part_from_below_what_comes_too_comes_with_what_is_below_it(run: Run, deepest_first: bool) -> None:
    made = ("x", "y", "a") if deepest_first else ("a", "y", "x")  # the order of their ids
    run("structure.apply", document=document(forums=[node(name) for name in made]))
    run("structure.apply", document=document(forums=[node("a"), node("y", node("m", node("x"), node("n")))]))
    for name in ("x", "m"):
        run("forums.create", name="Leaf", parentId=run("forums.get_external", externalId=name)["id"])
    part = document(
        under="a", forums=[node("x", node("one", name="Leaf")), node("y", node("m", node("two", name="Leaf"), node("n")))]
    )
    done = run("structure.apply", document=part, adopt=True)
    assert done["counts"] == {"create": 0, "update": 2, "move": 3, "delete": 0}
    assert tree(run) == [("A", [("X", ["Leaf"]), ("Y", [("M", ["Leaf", "N"])])])]
    assert run("structure.plan", document=part)["changes"] == []


def test_what_comes_into_a_part_is_limited_together(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    tops = [node(f"top-{number}", *(node(f"below-{number}-{n}") for n in range(4))) for number in range(3)]
    run("structure.apply", document=document(forums=[node("part"), *tops]))
    monkeypatch.setattr(matching, "_MOST", 10)
    for count, message in ((2, ""), (3, "TREE_TOO_LARGE")):
        part = document(under="part", forums=[node(f"top-{number}") for number in range(count)])
        if message:
            assert refuse(run, document=part).message == message
        else:
            assert run("structure.plan", document=part)["counts"]["move"] == count


def test_several_documents_are_one(gate: Gate, run: Run) -> None:
    parts = [document(forums=[node("a"), node("b")]), document(calendars=[node("c")])]
    done = gate.run(Call("structure.apply", TERMINAL, {"document": parts}))
    assert done.value["counts"]["create"] == 3
    assert (tree(run), run("calendars.list")["totalResults"]) == (["A", "B"], 1)


def test_adopting_takes_over_by_equal_paths_and_says_which(run: Run) -> None:
    first = run("forums.create", name="A")["id"]
    second = run("forums.create", name="A")["id"]
    below = run("forums.create", name="B", parentId=second)["id"]
    wanted = document(forums=[node("one", name="A"), node("two", node("three", name="B"), name="A")])
    plan = run("structure.plan", document=wanted)
    assert (plan["counts"]["create"], plan["adoptable"]) == (3, 3)
    done = run("structure.apply", document=wanted, adopt=True)
    assert [(change["id"], change["adopted"]) for change in done["changes"]] == [(first, True), (second, True), (below, True)]
    assert [run("forums.get", number)["externalId"] for number in (first, second, below)] == ["one", "two", "three"]
    assert run("structure.plan", document=wanted, adopt=True)["changes"] == []


def test_external_ids_that_an_export_makes_are_those_of_no_other_node(run: Run) -> None:
    run("forums.create", name="News", externalId="news")
    run("forums.create", name="Other news", externalId="news-2")
    top = run("forums.create", name="A", externalId="a")["id"]
    run("forums.create", name="News", parentId=top)
    before = tree(run)
    exported = run("structure.export", sections=["forums"], under="a")
    assert [entry["externalId"] for entry in exported["forums"]] == ["news-3"]
    run("structure.apply", document=exported, adopt=True, prune=True)
    assert tree(run) == before
    assert [one["externalId"] for one in run("forums.list")["results"]] == ["news", "news-2", "a", "news-3"]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The external ids that an export tries to make, in order."""
    found: list[str] = []
    number = export._number

    def count(path: str) -> Iterator[str]:
        for one in number(path):
            found.append(one)
            yield one

    monkeypatch.setattr(export, "_number", count)
    return found


def test_to_number_nodes_of_one_name_takes_a_step_for_each(run: Run, tried: list[str]) -> None:
    for _ in range(30):
        run("forums.create", name="News")
    made = [entry["externalId"] for entry in run("structure.export")["forums"]]
    assert made == tried == ["news", *(f"news-{number}" for number in range(2, 31))]


def test_so_does_numbering_nodes_whose_paths_differ_only_where_an_external_id_has_no_room(run: Run, tried: list[str]) -> None:
    for number in range(5):
        below = run("forums.create", name=f"Above {number}")["id"]
        for _ in range(4):
            below = run("forums.create", name="y" * 80, parentId=below)["id"]
    run("structure.export")
    assert len(tried) == len(set(tried)) == 25


def test_built_in_groups_are_known_without_an_external_id(run: Run) -> None:
    done = run("structure.apply", document=document(groups=[node("guests", name="Visitors")]), prune=True)
    assert [(change["action"], change["id"]) for change in done["changes"]] == [("update", 2)]
    assert [group["name"] for group in run("groups.list")["results"]] == ["Visitors", "Members", "Administrators"]


def test_what_another_document_manages_is_left_to_it(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document("ours", forums=[node("a"), node("b")]))
    with database.unchanged():
        assert "managed by the document 'ours'" in refuse(run, document=document("theirs", forums=[node("a")])).detail
    done = run("structure.apply", document=document("theirs", forums=[node("c")]), prune=True)
    assert done["deletes"] == 0
    taken = run("structure.apply", document=document("theirs", forums=[node("a")]), adopt=True)
    assert ("managedBy", "ours", "theirs") in [
        (one["member"], one["before"], one["after"]) for change in taken["changes"] for one in change["differences"]
    ]


@pytest.mark.parametrize("prune", [True, False])
def test_kept_nodes_are_listed_with_or_without_prune(run: Run, prune: bool) -> None:
    run("structure.apply", document=document("ours", forums=[node("a"), node("b", node("c"))]))
    run("forums.create", name="By hand")
    wanted = document("theirs", forums=[node("d")])
    for operation in ("structure.plan", "structure.apply"):
        done = run(operation, document=wanted, prune=prune)
        kept = ["A", "B", "C"] if prune else ["A", "B", "By hand", "C"]
        assert (sorted(one["name"] for one in done["kept"]), done["keptCount"]) == (kept, len(kept))


def test_one_that_has_what_another_document_manages_below_it_is_not_deleted(run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document("ours", forums=[node("a"), node("b")]))
    run("structure.apply", document=document("theirs", under="a", forums=[node("c")]))
    with database.unchanged():
        refused = refuse(run, document=document("ours", forums=[node("b")]), prune=True)
    assert "'C'" in refused.detail
    assert "managed by the document 'theirs'" in refused.detail


def test_a_group_that_is_deleted_cannot_be_named(run: Run, database: DatabaseState) -> None:
    run(
        "structure.apply",
        document=document(groups=[node("mods"), node("team")], forums=[node("a", permissions={"view": ["team"]})]),
    )
    with database.unchanged():
        wanted = document(groups=[node("mods")], forums=[node("a", permissions={"view": ["team"]})])
        assert "'team'" in refuse(run, document=wanted, prune=True).detail
    run("structure.apply", document=document(groups=[node("mods")], forums=[node("a", permissions={"view": ["mods"]})]), prune=True)
    assert [group["name"] for group in run("groups.list")["results"]][3:] == ["Mods"]


def test_an_external_id_that_goes_to_another_kind(run: Run) -> None:
    run("structure.apply", document=document(forums=[node("a"), node("b")]))
    done = run("structure.apply", document=document(forums=[node("b")], calendars=[node("a")]), prune=True)
    assert sorted(actions(done)) == [("create", "calendars", "A"), ("delete", "forums", "A")]


def test_drift_is_told(run: Run) -> None:
    wanted = document(forums=[node("a"), node("b")])
    run("structure.apply", document=wanted)
    run("forums.update", 1, name="By hand")
    event = run("events.list", limit=1000)["results"][-1]["seq"]
    (change,) = run("structure.plan", document=wanted)["changes"]
    assert (change["drift"]["event"], change["drift"]["operation"]) == (event, "forums.update")
    (own,) = run("structure.plan", document=document(forums=[node("a", name="By hand"), node("b", name="Z")]))["changes"]
    assert (own["path"], own["drift"]) == ("Z", None)


def test_drift_is_told_of_each_of_many(run: Run) -> None:
    names = [f"n-{number}" for number in range(9)]
    run("structure.apply", document=document(forums=[node(name) for name in names]))
    by_hand: dict[str, int] = {}
    for number in (2, 5, 8):
        run("forums.update", number, name="By hand")
        by_hand[f"n-{number - 1}"] = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    wanted = document(forums=[node(name, description="<p>New.</p>") for name in names[:-2]])
    plan = run("structure.plan", document=wanted, prune=True)
    assert {(change["externalId"], change["action"]) for change in plan["changes"]} == {
        *((name, "update") for name in names[:-2]),
        *((name, "delete") for name in names[-2:]),
    }
    assert {change["externalId"]: change["drift"]["event"] for change in plan["changes"] if change["drift"]} == by_hand


# --- plans --------------------------------------------------------------------------------------------------------


def test_a_plan_is_applied_once_and_exactly(run: Run, database: DatabaseState) -> None:
    wanted = document(forums=[node("a")])
    plan = run("structure.plan", document=wanted)["plan"]
    with database.unchanged():
        for other in (document(forums=[node("b")]), wanted | {"name": "another"}):
            assert refuse(run, document=other, plan=plan).message == "PLAN_DIFFERS"
        for nonsense in ("nonsense", "9" * 90 + "-a", "-1"):
            assert refuse(run, document=wanted, plan=nonsense).message == "PLAN_DIFFERS"
    assert run("structure.apply", document=wanted, plan=plan)["plan"] == plan
    with database.unchanged():
        again = refuse(run, document=wanted, plan=plan)
    assert again.message == "PLAN_OUTDATED"
    assert [change["operation"] for change in again.facts["changes"]] == ["forums.create"]


def test_a_plan_from_before_events_that_were_purged_is_outdated(gate: Gate, run: Run, database: DatabaseState) -> None:
    run("structure.apply", document=document(forums=[node("a")]))
    wanted = document(forums=[node("a", name="Planned")])
    plan = run("structure.plan", document=wanted)["plan"]
    run("forums.update", 1, name="By hand")
    newest = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    last = run("structure.plan", document=wanted)["plan"]
    gate.store.write(lambda tx: events.purge(tx, "9999")).result()
    with database.unchanged():
        refused = refuse(run, document=wanted, plan=plan)
    assert (refused.message, refused.facts["changes"]) == ("PLAN_OUTDATED", [])
    assert last.startswith(f"{newest}-")
    assert run("structure.apply", document=wanted, plan=last)["counts"]["update"] == 1


def test_a_plan_of_another_database_is_refused(gate: Gate, run: Run, database: DatabaseState) -> None:
    wanted = document(forums=[node("a")])
    plan = run("structure.plan", document=wanted)["plan"]
    number, _, digest = plan.partition("-")
    with database.unchanged():
        refused = refuse(run, document=wanted, plan=f"{int(number) + 1}-{digest}")  # as before an older copy was restored
    assert (refused.message, refused.facts["changes"]) == ("PLAN_OUTDATED", [])
    assert "it is a plan of another database, or an older copy of this one has been restored since" in refused.detail
    gate.store.write(lambda tx: tx.connection.execute(sa.update(signing_keys).values(key="00" * 32))).result(30)
    with database.unchanged():
        assert refuse(run, document=wanted, plan=plan).message == "PLAN_DIFFERS"


def test_a_plan_is_outdated_by_a_change_of_what_it_read_and_by_no_other(run: Run) -> None:
    run("forums.create", name="Other")
    wanted = document(forums=[node("a")])
    plan = run("structure.plan", document=wanted)["plan"]
    run("calendars.create", name="Not read")
    assert run("structure.plan", document=wanted)["counts"]["create"] == 1
    run("structure.apply", document=wanted, plan=plan)
    plan = run("structure.plan", document=document(forums=[node("b")]))["plan"]
    changed = run("forums.update", 1, name="Changed")["id"]
    refused = refuse(run, document=document(forums=[node("b")]), plan=plan)
    assert [(one["operation"], one["id"]) for one in refused.facts["changes"]] == [("forums.update", changed)]


def test_the_same_apply_twice_does_nothing_the_second_time(gate: Gate, database: DatabaseState) -> None:
    wanted = document(groups=[node("mods")], forums=[node("a", node("b"), permissions={"view": ["mods"]})])
    apply(gate, wanted)
    with database.unchanged():
        again = apply(gate, wanted)
    assert (again.value["changes"], again.event, again.change_set) == ([], None, None)


def test_undo_brings_all_of_it_back(gate: Gate, run: Run) -> None:
    apply(gate, document(forums=[node("a", node("b")), node("c")]))
    before = run("forums.tree")
    done = apply(gate, document(forums=[node("c", node("b", name="Other")), node("d")]), prune=True)
    assert done.value["counts"] == {"create": 1, "update": 1, "move": 0, "delete": 1}
    undone = run("changesets.restore", done.change_set)
    assert undone["conflictCount"] == 0
    assert timeless(run("forums.tree")) == timeless(before)


# --- passwords and keys -------------------------------------------------------------------------------------------


def test_a_password_that_fits_is_no_change(run: Run) -> None:
    wanted = document(forums=[node("a", password="open sesame")])
    run("structure.apply", document=wanted)
    assert run("forums.get_external", externalId="a")["passwordProtected"] is True
    assert run("structure.plan", document=wanted)["changes"] == []
    (change,) = run("structure.plan", document=document(forums=[node("a", password="another one")]))["changes"]
    assert change["differences"] == [{"member": "password", "before": None, "after": None}]


@pytest.mark.parametrize("actor", [TERMINAL, Actor("key", 7, "Plugin", None)], ids=["terminal", "key"])
def test_a_plan_is_for_the_passwords_that_it_was_made_with(gate: Gate, run: Run, database: DatabaseState, actor: Actor) -> None:
    run("structure.apply", document=document(forums=[node("b", password="as it was")]))

    def wanted(new: str, changed: Any) -> dict[str, Any]:
        return document(forums=[node("a", password=new), node("b", password=changed)])

    plan = gate.run(Call("structure.plan", actor, {"document": wanted("open sesame", "another one")})).value["plan"]
    for new, changed in (
        ("0pen sesame", "another one"),
        ("open sesame", "an0ther one"),
        ("open sesame", None),
        ("another one",) * 2,
    ):
        with database.unchanged(), pytest.raises(Refused) as refused:
            gate.run(Call("structure.apply", actor, {"document": wanted(new, changed), "plan": plan}))
        assert refused.value.message == "PLAN_DIFFERS"
        assert new not in refused.value.detail
    assert gate.run(Call("structure.apply", actor, {"document": wanted("open sesame", "another one"), "plan": plan})).event
    assert run("structure.plan", document=wanted("open sesame", "another one"))["changes"] == []


def test_the_name_of_a_plan_tells_nothing_of_passwords(gate: Gate, run: Run) -> None:
    """Whoever sees it and knows the document cannot try passwords on it: it differs with a key that the database keeps."""
    wanted = document(forums=[node("a", password="open sesame")])
    plan = run("structure.plan", document=wanted)["plan"]
    assert run("structure.plan", document=wanted)["plan"] == plan
    gate.store.write(lambda tx: tx.connection.execute(sa.update(signing_keys).values(key="00" * 32))).result(30)
    assert run("structure.plan", document=wanted)["plan"] != plan


def test_a_document_sets_few_passwords(run: Run, database: DatabaseState) -> None:
    many = [node(f"f{number}", password=f"password {number}") for number in range(21)]
    with database.unchanged():
        refused = refuse(run, document=document(forums=many))
    assert (refused.message, refused.detail) == (
        "SETS_TOO_MANY_PASSWORDS",
        "This request sets 21 passwords, but at most 20 are allowed. Nothing was done. Set fewer of them at once.",
    )


def test_keys_are_made_once_and_their_secrets_are_in_no_event(gate: Gate, run: Run, events: Events) -> None:
    wanted = document(keys=[{"name": "Sync", "grants": ["forums.list"], "rateLimit": 60}])
    plan = run("structure.plan", document=wanted)
    assert "secrets" not in plan
    done = apply(gate, wanted, plan=plan["plan"])
    (secret,) = done.value["secrets"]
    assert (secret["name"], secret["key"][:4]) == ("Sync", "trl_")
    assert secret["key"] not in str(events())
    assert run("structure.plan", document=wanted)["changes"] == []
    (change,) = run("structure.plan", document=document(keys=[{"name": "Sync", "grants": ["forums.*"]}]))["changes"]
    assert (change["action"], [one["member"] for one in change["differences"]]) == ("update", ["grants"])


def test_a_key_of_a_document_has_a_dialect(run: Run) -> None:
    wanted = {"name": "Old client", "dialect": "invision"}
    run("structure.apply", document=document(keys=[wanted]))
    assert run("keys.get", 1)["dialect"] == "invision"
    assert run("structure.plan", document=document(keys=[wanted]))["changes"] == []
    (change,) = run("structure.plan", document=document(keys=[wanted | {"dialect": "trellis"}]))["changes"]
    assert change["differences"] == [{"member": "dialect", "before": "invision", "after": "trellis"}]


def test_a_key_that_was_paused_is_not_made_anew(run: Run) -> None:
    wanted = document(keys=[{"name": "Sync", "grants": ["forums.list"]}])
    run("structure.apply", document=wanted)
    run("keys.pause", 1, reason="A doubt")
    assert run("structure.plan", document=wanted)["changes"] == []
    more = document(keys=[{"name": "Sync", "grants": ["forums.list", "forums.get"]}])
    assert actions(run("structure.apply", document=more)) == [("update", "keys", "Sync")]
    assert run("keys.list")["totalResults"] == 1
    assert (run("keys.get", 1)["state"], run("keys.get", 1)["grants"]) == ("paused", ["forums.get", "forums.list"])


def test_a_key_that_has_expired_as_the_document_says_is_no_difference(run: Run, clock: Clock) -> None:
    grants = {"grants": ["forums.list"], "bounds": {"forums.list": {"until": "2026-02-01T00:00:00Z"}}}
    wanted = document(keys=[{"name": "Sync", "expires": "2026-02-01T00:00:00Z", **grants}])
    run("structure.apply", document=wanted)
    clock.move(days=3)
    assert run("structure.plan", document=wanted)["changes"] == []
    assert run("structure.apply", document=wanted)["changes"] == []
    past = document(keys=[{"name": "Sync", "expires": "2026-02-02T00:00:00Z"}])
    assert "in the past" in refuse(run, document=past).detail


def test_keys_of_a_document_are_not_made_by_a_key(gate: Gate, run: Run) -> None:
    caller = Actor("key", 7, "Plugin", frozenset(["structure.plan", "structure.apply", "groups.list"]))
    for operation in ("structure.plan", "structure.apply"):
        with pytest.raises(Refused) as refused:
            gate.run(Call(operation, caller, {"document": document(keys=[{"name": "More", "grants": ["*"]}])}))
        assert "only at the terminal and in the panel" in refused.value.detail
    assert run("keys.list")["totalResults"] == 0


def test_a_key_that_sends_keys_is_refused_before_anything_is_created(gate: Gate) -> None:
    wanted = document(forums=[node("a", type="redirect")], keys=[{"name": "More"}])  # a redirect is refused when it is created
    for operation in ("structure.plan", "structure.apply"):
        with pytest.raises(Refused, match="only at the terminal and in the panel"):
            gate.run(Call(operation, Actor("key", 7, "Plugin", None), {"document": wanted}))


def test_progress_counts_keys_too(gate: Gate) -> None:
    told: list[tuple[int, int]] = []
    wanted = document(forums=[node("a")], keys=[{"name": name} for name in ("One", "Two")])
    gate.run(Call("structure.apply", TERMINAL, {"document": wanted}, progress=lambda done, total: told.append((done, total))))
    assert told == [(1, 3), (2, 3), (3, 3)]
