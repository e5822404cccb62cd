"""What other tests of bounds would not notice if it were judged wrongly: the last net of the gate, and the rarer ways outside."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fixture_types import Events, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.bounds import find_reach, judge_touched
from trellis.core.gate import Gate, Result
from trellis.core.keys import authenticate
from trellis.errors import Refused

Act = Callable[..., Result]
MakeActor = Callable[..., Actor]
Refuse = Callable[..., Refused]
Forums = dict[str, int]


def test_whatever_an_operation_has_touched_must_be_inside(gate: Gate, bot: Actor, forums: Forums) -> None:
    """The gate looks once it has run: operations are to see to it themselves, and one that does not is rolled back."""
    with gate.store.reading() as tx:
        judge_touched(tx, bot, "forums.update", [forums["Part"], forums["Leaf"], 9999])
        for outside in ("News", "Away", "Child"):
            with pytest.raises(Refused) as refused:
                judge_touched(tx, bot, "forums.update", [forums["Leaf"], forums[outside]])
            assert refused.value.message == "OUT_OF_BOUNDS"
        reach = find_reach(bot, "forums.update", "forums")
        assert reach is not None
        assert not reach.contains(tx, None)
        assert reach.contains(tx, forums["Part"])


def test_a_copy_reads_only_what_is_inside(act: Act, refused: Refuse, bot: Actor, forums: Forums) -> None:
    """The record that is copied, and all below it; not what was moved out since, nor what is above."""
    for outside in ("News", "Away", "Child"):
        for raw in ({}, {"withChildren": True}):
            told = refused(bot, "forums.copy", forums[outside], parentId=forums["Inner"], **raw)
            assert (told.message, told.status) == ("INVALID_ID", 404)
    made = act(bot, "forums.copy", forums["Inner"], parentId=forums["Other"], withChildren=True).value["id"]
    below = act(bot, "forums.tree", root=made).value["children"]
    assert [one["name"] for one in below] == ["Leaf"]


def test_undoing_its_own_move_does_not_move_the_part_itself(
    run: Run, act: Act, refused: Refuse, bot: Actor, forums: Forums, events: Events
) -> None:
    """Where the part stands is above it; by an undo it can go no more than by a change."""
    run("forums.update", forums["Part"], parentId=None)
    run("forums.update", forums["Part"], parentId=forums["News"])
    before = len(events())
    assert refused(bot, "events.restore", events()[-1]["seq"]).message == "OUT_OF_BOUNDS"
    assert len(events()) == before
    assert act(bot, "forums.get", forums["Part"]).value["parentId"] == forums["News"]


def test_undoing_tells_a_key_nothing_of_the_events_of_others(
    run: Run, actor: MakeActor, refused: Refuse, forums: Forums, events: Events
) -> None:
    """For a key that may undo only what it did itself, an event of somebody else does not exist."""
    run("forums.update", forums["Leaf"], name="Renamed")
    others = events()[-1]["seq"]
    own_only = {"ownOnly": True}
    for more in ({}, {"events__list": own_only}):
        caller = actor(["events.list", "forums.restore"] if more else ["forums.restore"], forums__restore=own_only, **more)
        for operation in ("events.restore", "forums.restore"):
            there, never = refused(caller, operation, others), refused(caller, operation, 9999)
            assert (there.code, there.message, there.facts) == (never.code, never.message, never.facts)
            assert there.detail.replace(str(others), "9999") == never.detail


def test_a_list_that_is_in_memory_loses_what_is_deleted(act: Act, run: Run, bot: Actor, forums: Forums) -> None:
    assert act(bot, "forums.list").value["totalResults"] == 4
    run("forums.delete", forums["Leaf"])
    left = act(bot, "forums.list").value
    assert ([one["id"] for one in left["results"]], left["totalResults"]) == ([forums[n] for n in ("Part", "Inner", "Other")], 3)


def test_what_was_deleted_twice_was_where_it_was_deleted_last(
    act: Act, run: Run, bot: Actor, forums: Forums, events: Events
) -> None:
    def told() -> set[int]:
        return {event["resourceId"] for event in act(bot, "events.list", limit=100).value["results"]}

    run("forums.delete", forums["Leaf"])
    assert forums["Leaf"] in told()
    run("events.restore", events()[-1]["seq"])
    run("forums.update", forums["Leaf"], parentId=forums["Away"])
    run("forums.delete", forums["Leaf"])
    assert forums["Leaf"] not in told()


@pytest.mark.parametrize("limit", [{"bounds": {"forums.create": {"perDay": 2}}}, {"perDay": 5}], ids=["of a grant", "of the key"])
def test_what_is_made_together_is_counted_one_by_one(
    gate: Gate, key: MakeKey, act: Act, refused: Refuse, run: Run, limit: dict[str, Any]
) -> None:
    grants = ["structure.apply", "groups.list", *(f"forums.{verb}" for verb in ("list", "create", "update"))]
    text = key(grants, **limit)
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    entries = [{"externalId": f"f{number}", "name": f"Forum {number}"} for number in range(3)]
    document = {"format": "trellis/1", "name": "three", "forums": entries}
    assert refused(caller, "structure.apply", document=document).message == "GRANT_USED_UP"
    assert run("forums.list")["totalResults"] == 0
    if "bounds" in limit:
        counts = act(caller, "structure.apply", document={**document, "forums": entries[:2]}).value["counts"]
        assert counts["create"] == 2


def test_a_document_reaches_as_far_as_all_of_its_grants(actor: MakeActor, act: Act, refused: Refuse, forums: Forums) -> None:
    """It may be applied within Part, and its caller may list Inner alone: what both have in common is Inner."""
    part, inner = ({"under": [f"forums:{forums[name]}"]} for name in ("Part", "Inner"))
    grants = ["structure.apply", "structure.plan", "groups.list", *(f"forums.{v}" for v in ("list", "create", "update", "delete"))]
    bounds = {name.replace(".", "__"): part for name in grants if name != "groups.list"}
    caller = actor(grants, **bounds | {"forums__list": inner})
    head, fresh = {"format": "trellis/1", "name": "inner"}, [{"externalId": "fresh", "name": "Fresh"}]
    told = refused(caller, "structure.plan", document={**head, "under": "part", "forums": fresh})
    never = refused(caller, "structure.plan", document={**head, "under": "nobody", "forums": fresh})
    assert told.detail.replace("part", "nobody") == never.detail
    entries = [{"externalId": "leaf", "name": "Renamed"}]
    assert act(caller, "structure.apply", document={**head, "under": "inner", "forums": entries}).value["counts"]["update"] == 1


def test_a_document_sees_of_a_flat_kind_the_records_of_its_grants(actor: MakeActor, act: Act, run: Run) -> None:
    one, _two = (run("calendars.create", name=name, externalId=name.lower())["id"] for name in ("One", "Two"))
    grants = ["structure.plan", "groups.list", *(f"calendars.{verb}" for verb in ("list", "create", "update", "delete"))]
    under = {"under": [f"calendars:{one}"]}
    caller = actor(grants, **{name.replace(".", "__"): under for name in grants if name.startswith("calendars")})
    document = {"format": "trellis/1", "name": "own", "calendars": [{"externalId": "one", "name": "First"}]}
    told = act(caller, "structure.plan", document=document).value
    assert "two" not in str(told).lower()
    assert [change["id"] for change in told["changes"]] == [one]
