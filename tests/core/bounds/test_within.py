"""A grant that is for a part of the nodes: what is outside is answered as what does not exist, and is neither told nor changed."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.fixture_types import Events, Run
from tests.statement_meter import StatementMeter
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.languages import load_language

Act = Callable[..., Result]
MakeActor = Callable[..., Actor]
Refuse = Callable[..., Refused]
Forums = dict[str, int]
NOBODY = 9999  # the id of no forum


def _told(refused: Refused) -> tuple[Any, ...]:
    faults = tuple((fault.field, fault.detail) for fault in refused.faults)
    return refused.message, refused.code, refused.detail, faults, dict(refused.facts)


def _ids(listed: dict[str, Any]) -> set[int]:
    return {one["id"] for one in listed["results"]}


def test_what_is_outside_is_answered_as_what_does_not_exist(refused: Refuse, bot: Actor, forums: Forums, events: Events) -> None:
    cases: list[tuple[str, str | None, dict[str, Any]]] = [
        ("forums.get", "X", {}),
        ("forums.get_external", None, {"externalId": "x"}),
        ("forums.tree", None, {"root": "X"}),
        ("forums.update", "X", {"name": "New"}),
        ("forums.update", "X", {}),
        ("forums.delete", "X", {}),
        ("forums.delete", "X", {"deleteChildrenOrMove": -1}),
        ("forums.delete_external", None, {"externalId": "x"}),
        ("forums.copy", "X", {"parentId": "Inner"}),
        ("forums.create", None, {"name": "New", "parentId": "X"}),
        ("forums.create", None, {"name": "New", "parentExternalId": "x"}),
        ("forums.create", None, {"name": "New", "parentId": "Inner", "before": "X"}),
        ("forums.create", None, {"name": "New", "parentId": "Inner", "copyPermissionsFrom": "X"}),
        ("forums.update", "Inner", {"parentId": "X"}),
        ("forums.update", "Inner", {"parentExternalId": "x"}),
        ("forums.update", "Inner", {"after": "X"}),
        ("forums.update", "Inner", {"copyPermissionsFrom": "X"}),
        ("forums.copy", "Inner", {"parentId": "X"}),
        ("forums.delete", "Inner", {"deleteChildrenOrMove": "X"}),
        ("forums.order", None, {"parentId": "X", "ids": ["Child"]}),
        ("forums.order", None, {"parentId": "Part", "ids": ["X"]}),
        ("forums.put_external", None, {"externalId": "new", "name": "New", "parentId": "X"}),
    ]
    before = len(events())

    def fill(value: Any, meant: int) -> Any:
        if isinstance(value, list):
            return [fill(one, meant) for one in value]
        return meant if value == "X" else forums.get(value, value)

    for (operation, target, raw), outside in product(cases, ("News", "Away", "Child")):
        told = []
        for meant, names in ((forums[outside], {"x": outside.lower()}), (NOBODY, {"x": "nobody"})):
            sent = {name: fill(names.get(value, value) if isinstance(value, str) else value, meant) for name, value in raw.items()}
            for dry in ({}, {"dryRun": True}) if operation not in {"forums.get", "forums.get_external", "forums.tree"} else ({},):
                answer = _told(refused(bot, operation, None if target is None else fill(target, meant), **sent, **dry))
                told.append(repr(answer).replace(str(NOBODY), str(forums[outside])).replace("nobody", outside.lower()))
        assert len(set(told)) == 1, (operation, target, raw, outside)
    assert len(events()) == before


def test_a_place_outside_is_refused_whatever_is_there(refused: Refuse, bot: Actor, forums: Forums, events: Events) -> None:
    cases: list[tuple[str, str | None, dict[str, Any]]] = [
        ("forums.create", None, {"name": "New"}),
        ("forums.create", None, {"name": "New", "parentId": None}),
        ("forums.put_external", None, {"externalId": "new", "name": "New"}),
        ("forums.update", "Inner", {"parentId": None}),
        ("forums.update", "Part", {"parentId": "Inner"}),
        ("forums.update", "Part", {"position": 9}),
        ("forums.update", "Part", {"before": "Away"}),
        ("forums.copy", "Part", {}),
        ("forums.copy", "Inner", {"parentId": None}),
        ("forums.order", None, {"ids": ["Away"]}),
    ]
    before = len(events())
    for operation, target, raw in cases:
        sent = {name: forums.get(value, value) if isinstance(value, str) else value for name, value in raw.items()}
        if "ids" in raw:
            sent["ids"] = [forums[name] for name in raw["ids"]]
        answer = refused(bot, operation, forums[target] if target else None, **sent)
        assert (answer.message, answer.status) == ("OUT_OF_BOUNDS", 403), (operation, target, raw)
        assert answer.facts["under"] == [f"forums:{forums['Part']}"]
    assert len(events()) == before


def test_nothing_is_listed_below_a_node_outside(act: Act, bot: Actor, forums: Forums) -> None:
    for outside in (forums["News"], forums["Away"], NOBODY):
        for query in ({"parentId": outside}, {"under": outside}, {"under": outside, "parentId": forums["Part"]}):
            assert act(bot, "forums.list", **query).value["totalResults"] == 0


def test_inside_everything_can_be_done(act: Act, bot: Actor, forums: Forums) -> None:
    made = act(bot, "forums.create", name="New", parentId=forums["Part"], position=0).value
    act(bot, "forums.update", made["id"], parentId=forums["Inner"], name="Moved")
    act(bot, "forums.copy", forums["Inner"], withChildren=True)
    act(bot, "forums.order", parentId=forums["Part"], ids=[forums["Other"], forums["Inner"]])
    act(bot, "forums.put_external", externalId="leaf", name="Renamed")
    act(bot, "forums.delete", forums["Inner"], deleteChildrenOrMove=forums["Other"])
    tree = act(bot, "forums.tree").value
    assert [child["name"] for child in tree["children"]] == ["Part"]
    assert {one["name"] for one in tree["children"][0]["children"]} == {"Other", "Inner"}


@pytest.mark.parametrize("body", [{}, {"name": "New"}, {"position": 0}, {"parentId": "Inner"}])
def test_what_is_outside_is_so_beside_what_is_inside(
    refused: Refuse, bot: Actor, forums: Forums, events: Events, body: dict[str, Any]
) -> None:
    before = len(events())
    sent = {name: forums.get(value, value) for name, value in body.items()}
    told = []
    for meant in (forums["Child"], NOBODY):
        steps = [{"operation": "forums.update", "id": one, "body": sent} for one in (forums["Leaf"], forums["Other"], meant)]
        answer = refused(bot, "core.batch", operations=steps)
        assert (answer.facts["index"], answer.facts["problem"].message) == (2, "INVALID_ID")
        told.append(answer.facts["problem"].detail.replace(str(meant), "N"))
    assert told[0] == told[1]
    assert len(events()) == before


@pytest.mark.parametrize("body", [{"name": "New"}, {"parentId": "Part"}, {"parentId": "Other", "position": 0}])
def test_few_statements_change_many_nodes_inside(act: Act, bot: Actor, forums: Forums, body: dict[str, Any]) -> None:
    sent = {name: forums.get(value, value) for name, value in body.items()}
    counts: list[int] = []
    for size in (5, 25):
        create = {"operation": "forums.create", "body": {"name": "One", "parentId": forums["Inner"]}}
        made = [one["result"]["id"] for one in act(bot, "core.batch", operations=[create] * size).value["results"]]
        with StatementMeter() as meter:
            act(bot, "core.batch", operations=[{"operation": "forums.update", "id": one, "body": sent} for one in made])
        counts.append(meter.count)
    assert counts[1] < counts[0] + 10, counts  # of 20 more nodes


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("Leaf", {"name": "New"}), ("Part", {"position": 1})], "OUT_OF_BOUNDS"),
        ([("Leaf", {"parentId": "Part"}), ("Other", {"parentId": None})], "OUT_OF_BOUNDS"),
        ([("Leaf", {"parentId": "Part"}), ("Other", {"parentId": "Away"})], "INVALID_PARENT"),
    ],
)
def test_a_place_outside_is_refused_beside_one_inside(
    refused: Refuse, bot: Actor, forums: Forums, events: Events, steps: list[tuple[str, dict[str, Any]]], message: str
) -> None:
    before = len(events())
    operations = [
        {
            "operation": "forums.update",
            "id": forums[name],
            "body": {member: forums.get(value, value) for member, value in body.items()},
        }
        for name, body in steps
    ]
    answer = refused(bot, "core.batch", operations=operations)
    assert (answer.facts["index"], answer.facts["problem"].message) == (1, message)
    assert len(events()) == before


def test_what_was_read_can_be_sent_back_unchanged(act: Act, bot: Actor, forums: Forums) -> None:
    for name in ("Part", "Inner"):
        record = act(bot, "forums.get", forums[name]).value
        sent = {member: record[member] for member in ("name", "parentId", "position", "externalId")}
        assert act(bot, "forums.update", forums[name], **sent).event is None


def test_the_part_itself_can_be_deleted_and_then_nothing_is_inside(act: Act, refused: Refuse, bot: Actor, forums: Forums) -> None:
    act(bot, "forums.delete", forums["Part"], deleteChildrenOrMove=-1)
    assert act(bot, "forums.list").value["totalResults"] == 0
    assert act(bot, "forums.tree").value["children"] == []
    assert act(bot, "events.list").value["results"] == []
    assert refused(bot, "forums.create", name="New", parentId=forums["News"]).message == "INVALID_PARENT"


def test_an_external_id_that_is_taken_outside_is_refused_without_saying_by_what(
    refused: Refuse, bot: Actor, forums: Forums
) -> None:
    for operation, target, raw in (
        ("forums.create", None, {"name": "New", "parentId": forums["Part"], "externalId": "away"}),
        ("forums.update", forums["Inner"], {"externalId": "away"}),
        ("forums.put_external", None, {"externalId": "away", "name": "New", "parentId": forums["Part"]}),
    ):
        answer = refused(bot, operation, target, **raw)
        assert (answer.message, dict(answer.facts)) == ("EXTERNAL_ID_TAKEN", {})
        assert str(forums["Away"]) not in answer.detail
    inside = refused(bot, "forums.update", forums["Inner"], externalId="leaf")
    assert inside.facts == {"id": forums["Leaf"]}


def test_a_list_is_right_after_a_subtree_was_moved_out_and_in_again(act: Act, run: Run, bot: Actor, forums: Forums) -> None:
    queries: tuple[dict[str, str], ...] = ({}, {"search": "e"}, {"sortBy": "name"}, {"type": "discussions", "sortBy": "position"})
    for _ in range(2):
        for parent, names in (("Part", {"Part", "Inner", "Leaf", "Other"}), ("Away", {"Part", "Other"})):
            run("forums.update", forums["Inner"], parentId=forums[parent])
            for query in (*queries, *queries):
                expected = {forums[name] for name in names if "e" in name.lower() or "search" not in query}
                listed = act(bot, "forums.list", **query).value
                assert (_ids(listed), listed["totalResults"]) == (expected, len(expected)), query


def test_a_part_is_not_widened_by_what_is_moved_into_it_or_above_it(act: Act, run: Run, bot: Actor, forums: Forums) -> None:
    run("forums.update", forums["Part"], parentId=forums["Child"])
    assert _ids(act(bot, "forums.list").value) == {forums[name] for name in ("Part", "Inner", "Leaf", "Other")}
    run("forums.update", forums["News"], parentId=forums["Inner"])
    assert forums["News"] in _ids(act(bot, "forums.list").value)  # by where it stands now


# --- events and undo ----------------------------------------------------------------------------------------------


def test_the_feed_tells_of_what_is_inside_and_of_what_was_when_it_was_deleted(
    act: Act, run: Run, bot: Actor, forums: Forums, events: Events
) -> None:
    run("forums.update", forums["Child"], name="Elsewhere")
    run("forums.delete", forums["Leaf"])
    run("calendars.create", name="Meetings")
    told = act(bot, "events.list").value["results"]
    assert {event["resourceId"] for event in told} == {forums[name] for name in ("Part", "Inner", "Leaf", "Other")}
    assert told[-1]["type"] == "forum.deleted"
    assert act(bot, "events.list", type="forum.deleted").value["results"] == told[-1:]
    assert act(bot, "events.list").value["next"] == events()[-1]["seq"]


def test_the_feed_hides_what_is_outside_of_an_event_that_is_told(act: Act, run: Run, bot: Actor, forums: Forums) -> None:
    run("forums.update", forums["Child"], parentId=forums["Part"])
    moved = act(bot, "events.list", order="newest", limit=1).value["results"][0]
    assert (moved["before"], moved["after"]["id"]) == (None, forums["Child"])
    run("forums.delete", forums["Inner"], deleteChildrenOrMove=forums["Away"])
    deleted = act(bot, "events.list", order="newest", limit=1).value["results"][0]
    assert (deleted["resourceId"], deleted["touched"]) == (forums["Inner"], [])


def test_undo_reaches_as_far_as_the_grant(act: Act, run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events) -> None:
    run("forums.update", forums["Child"], name="Elsewhere")
    outside = events()[-1]["seq"]
    answer = refused(bot, "events.restore", outside)
    never = refused(bot, "events.restore", NOBODY)
    assert _told(answer)[:2] == _told(never)[:2]
    assert answer.detail == never.detail.replace(str(NOBODY), str(outside))
    run("forums.delete", forums["Inner"], deleteChildrenOrMove=-1)
    assert act(bot, "events.restore", events()[-1]["seq"]).value["restored"]["count"] == 2


@pytest.mark.parametrize(
    ("operation", "node", "raw", "told"),
    [
        ("forums.create", None, {"name": "New"}, "Senden Sie die parentId eines Knotens darin."),
        (
            "forums.update",
            "Part",
            {"position": 1},
            "Knoten 2 selbst kann nicht verschoben werden: Seine Geschwister liegen außerhalb.",
        ),
        ("forums.update", "Inner", {"parentId": None}, "Die oberste Ebene liegt außerhalb."),
        ("forums.copy", "Part", {}, "Die Geschwister von 2 liegen außerhalb. Senden Sie die parentId eines Knotens darin."),
        ("structure.export", None, {"sections": ["forums", "calendars"]}, "Senden Sie nur diesen Abschnitt"),
    ],
)
def test_why_something_is_out_of_bounds_can_be_said_in_another_language(
    actor: MakeActor, refused: Refuse, forums: Forums, operation: str, node: str | None, raw: dict[str, Any], told: str
) -> None:
    under = {"under": [f"forums:{forums['Part']}"]}
    caller = actor([operation, "forums.list", "calendars.list", "groups.list"], **{operation.replace(".", "__"): under})
    refusal = refused(caller, operation, None if node is None else forums[node], **raw)
    assert refusal.message == "OUT_OF_BOUNDS"
    assert f"nur innerhalb von forums:2 ausführen. {told}" in load_language("de").sentence(refusal.detail)


def test_undo_moves_nothing_out_and_brings_nothing_in(
    act: Act, run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events
) -> None:
    run("forums.update", forums["Child"], parentId=forums["Part"])
    assert refused(bot, "events.restore", events()[-1]["seq"]).message == "OUT_OF_BOUNDS"
    run("forums.delete", forums["Inner"], deleteChildrenOrMove=forums["Away"])
    restored = act(bot, "events.restore", events()[-1]["seq"]).value
    assert (restored["moved"]["count"], restored["left"]["count"]) == (0, 0)
    assert run("forums.get", forums["Leaf"])["parentId"] == forums["Away"]


def test_undo_tells_nothing_of_a_record_while_it_was_outside(
    act: Act, run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events
) -> None:
    run("forums.update", forums["Child"], description="Outside")
    run("forums.update", forums["Child"], parentId=forums["Part"], name="Inside")
    run("forums.update", forums["Child"], description="Inside")
    changed, moved = (one["seq"] for one in events()[-3:-1])
    for event, raw in ((changed, {}), (moved, {}), (moved, {"parentId": forums["Inner"], "dryRun": True})):
        refusal = refused(bot, "events.restore", event, **raw)
        assert (refusal.message, set(refusal.facts)) == ("OUT_OF_BOUNDS", {"operation", "under"})
    assert act(bot, "events.restore", events()[-1]["seq"]).value["record"]["description"] == "Outside"
    run("forums.update", forums["Leaf"], parentId=forums["Away"], name="Outside")
    run("forums.update", forums["Leaf"], parentId=forums["Inner"], name="Leaf")
    assert refused(bot, "events.restore", events()[-2]["seq"]).message == "OUT_OF_BOUNDS"


def test_what_would_leave_the_part_is_a_conflict_of_a_change_set_and_the_rest_can_be_undone(
    actor: MakeActor, act: Act, run: Run, refused: Refuse, forums: dict[str, int], gate: Gate
) -> None:
    under = {"under": [f"forums:{forums['Part']}"]}
    bot = actor(["events.list", "forums.get", "forums.restore"], forums__restore=under)
    steps = [
        {"operation": "forums.update", "id": forums["Other"], "body": {"name": "Renamed"}},
        {"operation": "forums.update", "id": forums["Child"], "body": {"parentId": forums["Inner"]}},
        {"operation": "forums.update", "id": forums["Part"], "body": {"parentId": None}},
    ]
    batch = gate.run(Call("core.batch", TERMINAL, {"operations": steps}))
    tried = act(bot, "changesets.restore", batch.change_set, dryRun=True).value
    assert [one["message"] for one in tried["conflicts"]] == ["OUT_OF_BOUNDS", "OUT_OF_BOUNDS"]
    conflicts = refused(bot, "changesets.restore", batch.change_set).facts["conflicts"]
    assert conflicts == tried["conflicts"]
    undone = act(bot, "changesets.restore", batch.change_set, skipConflicts=True).value
    assert (undone["undoneCount"], undone["conflictCount"]) == (1, 2)
    assert run("forums.get", forums["Other"])["name"] == "Other"


def test_a_change_set_of_the_keys_own_is_undone_as_far_as_the_grant_reaches(
    act: Act, run: Run, refused: Refuse, bot: Actor, forums: Forums
) -> None:
    steps = [{"operation": "forums.create", "body": {"name": name, "parentId": forums["Part"]}} for name in ("One", "Two")]
    batch = act(bot, "core.batch", operations=steps)
    made = [one["result"]["id"] for one in batch.value["results"]]
    run("forums.update", made[0], parentId=forums["Away"])
    conflicts = refused(bot, "changesets.restore", batch.change_set).facts["conflicts"]
    assert [one["message"] for one in conflicts] == ["INVALID_ID"]
    undone = act(bot, "changesets.restore", batch.change_set, skipConflicts=True).value
    assert undone["undoneCount"] == 1
    assert run("forums.get", made[0])["name"] == "One"


# --- documents ----------------------------------------------------------------------------------------------------


def test_an_export_has_the_part_and_can_be_applied_again(act: Act, bot: Actor) -> None:
    document = act(bot, "structure.export", sections=["forums"]).value
    assert document["under"] == "part"
    assert [entry["externalId"] for entry in document["forums"]] == ["inner", "other"]
    plan = act(bot, "structure.plan", document=document).value
    assert {member["member"] for change in plan["changes"] for member in change["differences"]} == {"managedBy"}
    document["forums"][0]["name"] = "Renamed"
    document["forums"].append({"externalId": "fresh", "name": "Fresh"})
    counts = act(bot, "structure.apply", document=document).value["counts"]
    assert counts == {"create": 1, "update": 3, "move": 0, "delete": 0}  # they are managed by the document from now on


@pytest.mark.parametrize("operation", ["structure.plan", "structure.apply"])
def test_a_document_reaches_no_further(refused: Refuse, bot: Actor, events: Events, operation: str) -> None:
    before = len(events())
    head = {"format": "trellis/1", "name": "part"}
    whole = {**head, "forums": [{"externalId": "fresh", "name": "Fresh"}]}
    assert refused(bot, operation, document=whole).message == "OUT_OF_BOUNDS"
    told = [refused(bot, operation, document={**whole, "under": under}).detail.replace(under, "X") for under in ("away", "nobody")]
    assert told[0] == told[1]
    taken = {**head, "under": "part", "forums": [{"externalId": "away", "name": "Fresh"}]}
    assert "already" in refused(bot, operation, document=taken).detail
    assert len(events()) == before


def test_an_export_of_more_than_one_part_has_to_name_one(actor: MakeActor, act: Act, refused: Refuse, forums: Forums) -> None:
    under = {"under": [f"forums:{forums['Part']}", f"forums:{forums['Child']}"]}
    caller = actor(["structure.export", "forums.list", "groups.list"], forums__list=under)
    assert refused(caller, "structure.export", sections=["forums"]).message == "OUT_OF_BOUNDS"
    assert [one["name"] for one in act(caller, "structure.export", sections=["forums"], under="inner").value["forums"]] == ["Leaf"]
    assert refused(caller, "structure.export", sections=["forums"], under="away").message == "INVALID_VALUE"


# --- flat kinds ---------------------------------------------------------------------------------------------------


def test_of_a_flat_kind_a_grant_is_for_the_records_that_it_names(actor: MakeActor, act: Act, refused: Refuse, run: Run) -> None:
    one, two, three = (run("calendars.create", name=name)["id"] for name in ("One", "Two", "Three"))
    grants = [f"calendars.{verb}" for verb in ("list", "get", "create", "update", "delete")]
    under = {"under": [two, f"calendars:{three}"]}
    caller = actor(grants, **{name.replace(".", "__"): under for name in grants})
    assert [found["id"] for found in act(caller, "calendars.list", sortBy="name").value["results"]] == [three, two]
    assert refused(caller, "calendars.get", one).message == "INVALID_ID"
    new = refused(caller, "calendars.create", name="Four")
    assert (new.message, "parentId" in new.detail) == ("OUT_OF_BOUNDS", False)
    assert refused(caller, "calendars.update", two, position=0).message == "OUT_OF_BOUNDS"
    assert refused(caller, "calendars.order", ids=[three, two]).message == "OUT_OF_BOUNDS"
    act(caller, "calendars.update", two, name="Second")
    act(caller, "calendars.delete", three)
    assert act(caller, "calendars.list").value["totalResults"] == 1


def test_each_grant_has_its_own_part(actor: MakeActor, act: Act, refused: Refuse, forums: Forums) -> None:
    caller = actor(
        ["forums.get", "forums.update", "forums.create"],
        forums__update={"under": [forums["Part"]]},
        forums__create={"under": [forums["Inner"]]},
    )
    act(caller, "forums.get", forums["Away"])
    assert refused(caller, "forums.update", forums["Away"], name="New").message == "INVALID_ID"
    act(caller, "forums.update", forums["Other"], name="New")
    assert refused(caller, "forums.create", name="New", parentId=forums["Part"]).message == "INVALID_PARENT"
    read = act(caller, "forums.get", forums["Leaf"])
    assert read.value["parentId"] == forums["Inner"]
