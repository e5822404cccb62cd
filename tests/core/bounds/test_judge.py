"""Grants with bounds: until when, how often, tried only, proposed only; judged by the gate, call by call."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate, Result
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused

Act = Callable[..., Result]
MakeActor = Callable[..., Actor]
Refuse = Callable[..., Refused]


def test_a_grant_ends_when_it_is_to_end_and_the_others_do_not(actor: MakeActor, act: Act, refused: Refuse, clock: Clock) -> None:
    caller = actor(["forums.create", "forums.list"], forums__create={"until": "7d"})
    act(caller, "forums.create", name="News")
    clock.move(days=7)
    answer = refused(caller, "forums.create", name="More")
    assert (answer.message, answer.status) == ("GRANT_ENDED", 403)
    assert answer.facts == {"missingOperation": "forums.create", "endedAt": "2026-02-07T09:30:00.000Z"}
    assert act(caller, "forums.list").value["totalResults"] == 1


def test_what_may_only_be_tried_is_tried(actor: MakeActor, act: Act, refused: Refuse, events: Events) -> None:
    caller = actor(["forums.create"], forums__create={"dryRunOnly": True})
    before = len(events())
    assert refused(caller, "forums.create", name="News").message == "DRY_RUN_ONLY"
    assert act(caller, "forums.create", name="News", dryRun=True).value["name"] == "News"
    assert len(events()) == before


def test_what_has_to_be_approved_is_proposed_and_may_be_tried(actor: MakeActor, act: Act, run: Run, events: Events) -> None:
    caller = actor(["forums.create"], forums__create={"level": "propose"})
    before = len(events())
    assert act(caller, "forums.create", name="News", dryRun=True).dry
    assert len(events()) == before
    assert act(caller, "forums.create", name="News").value["state"] == "open"
    assert [event["type"] for event in events()[before:]] == ["proposal.created"]
    assert run("forums.list")["totalResults"] == 0


@pytest.mark.parametrize("bound", [{"dryRunOnly": True}, {"until": "1h"}, {"perDay": 1}])
def test_what_a_batch_runs_is_judged_by_its_own_grant(
    actor: MakeActor, act: Act, refused: Refuse, run: Run, clock: Clock, bound: dict[str, Any]
) -> None:
    caller = actor(["forums.create", "calendars.create"], forums__create=bound)
    steps = [
        {"operation": "calendars.create", "body": {"name": "Meetings"}},
        {"operation": "forums.create", "body": {"name": "News"}},
        {"operation": "forums.create", "body": {"name": "More"}},
    ]
    clock.move(hours=1)
    answer = refused(caller, "core.batch", operations=steps)
    assert (answer.message, answer.facts["index"]) == ("BATCH_REFUSED", 2 if "perDay" in bound else 1)
    assert run("calendars.list")["totalResults"] == 0
    if "until" not in bound and "perDay" not in bound:
        assert len(act(caller, "core.batch", operations=steps, dryRun=True).value["results"]) == 3


def test_uses_are_counted_by_day_and_only_those_that_were_kept(actor: MakeActor, act: Act, refused: Refuse, clock: Clock) -> None:
    caller = actor(["forums.create"], forums__create={"perDay": 2})
    act(caller, "forums.create", name="One")
    act(caller, "forums.create", name="Tried", dryRun=True)
    refused(caller, "forums.create", name="")
    act(caller, "forums.create", name="Two")
    answer = refused(caller, "forums.create", name="Three")
    assert (answer.message, answer.status) == ("GRANT_USED_UP", 429)
    assert answer.facts == {"operation": "forums.create", "perDay": 2, "retryAfter": 14.5 * 3600 + 1}
    for day in range(2):  # the first begins a month, the second does not
        clock.move(hours=15 + 9 * day)
        act(caller, "forums.create", name=f"Three of {day}")
        act(caller, "forums.create", name=f"Four of {day}")
        assert refused(caller, "forums.create", name="Five").message == "GRANT_USED_UP"


def test_a_clock_that_is_set_back_gives_no_use_back(actor: MakeActor, act: Act, refused: Refuse, clock: Clock) -> None:
    caller = actor(["forums.create"], forums__create={"perDay": 1, "until": "3d"})
    act(caller, "forums.create", name="One")
    clock.move(days=1)
    act(caller, "forums.create", name="Two")
    for back in (-1, 1):
        clock.move(days=back)
        assert refused(caller, "forums.create", name="Three").message == "GRANT_USED_UP"
    clock.move(days=2)
    assert refused(caller, "forums.create", name="Three").message == "GRANT_ENDED"


def test_reads_are_counted_too(actor: MakeActor, act: Act, refused: Refuse) -> None:
    caller = actor(["forums.list"], forums__list={"perDay": 2})
    act(caller, "forums.list")
    act(caller, "forums.tree")
    assert refused(caller, "forums.list").message == "GRANT_USED_UP"
    assert refused(caller, "forums.tree").message == "GRANT_USED_UP"


def test_what_a_read_runs_is_counted_too(actor: MakeActor, act: Act, refused: Refuse) -> None:
    caller = actor(["structure.export", "calendars.list", "groups.list"], calendars__list={"perDay": 2})
    for _ in range(2):
        act(caller, "structure.export", sections=["calendars"])
    assert refused(caller, "structure.export", sections=["calendars"]).message == "GRANT_USED_UP"


@pytest.mark.parametrize("limit", [{"bounds": {"forums.*": {"perDay": 1}}}, {"perDay": 1}], ids=["grants", "key"])
def test_a_read_that_is_refused_is_no_use(
    gate: Gate, key: MakeKey, run: Run, act: Act, refused: Refuse, limit: dict[str, Any]
) -> None:
    forum = run("forums.create", name="News")["id"]
    text = key(["forums.get", "forums.list"], **limit)
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    for _ in range(2):
        assert refused(caller, "forums.get", forum + 1).message == "INVALID_ID"
        assert refused(caller, "forums.list", page=0).message == "INVALID_VALUE"
    assert act(caller, "forums.get", forum).value["name"] == "News"
    assert refused(caller, "forums.get", forum).message == "GRANT_USED_UP"


def test_what_a_refused_read_has_run_is_no_use(actor: MakeActor, act: Act, refused: Refuse) -> None:
    grants = ["structure.export", "calendars.list", "categories.list", "groups.list"]
    caller = actor(grants, calendars__list={"perDay": 1}, categories__list={"perDay": 0})
    for _ in range(2):
        answer = refused(caller, "structure.export", sections=["calendars", "categories"])
        assert (answer.message, answer.facts["operation"]) == ("GRANT_USED_UP", "categories.list")
    act(caller, "structure.export", sections=["calendars"])
    assert refused(caller, "structure.export", sections=["calendars"]).message == "GRANT_USED_UP"


@pytest.mark.parametrize("limit", [{"bounds": {"forums.get": {"perDay": 3}}}, {"perDay": 3}], ids=["grant", "key"])
def test_a_batch_that_only_reads_counts_what_it_reads(
    gate: Gate, key: MakeKey, run: Run, act: Act, refused: Refuse, limit: dict[str, Any]
) -> None:
    forum = run("forums.create", name="News")["id"]
    text = key(["forums.get", "forums.update"], **limit)
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    twice = [{"operation": "forums.get", "id": forum}] * 2
    with DatabaseState(gate).new_events() as events:
        done = act(caller, "core.batch", operations=twice)
    assert (done.event, done.change_set, events()) == (None, None, [])
    assert refused(caller, "core.batch", operations=twice).facts["problem"].message == "GRANT_USED_UP"
    act(caller, "forums.get", forum)
    assert refused(caller, "forums.get", forum).message == "GRANT_USED_UP"


@pytest.mark.parametrize("limit", [{"bounds": {"forums.get": {"perDay": 3}}}, {"perDay": 3}], ids=["grant", "key"])
def test_a_dry_run_of_a_batch_counts_what_it_reads_and_nothing_else(
    gate: Gate, key: MakeKey, run: Run, act: Act, refused: Refuse, limit: dict[str, Any]
) -> None:
    forum = run("forums.create", name="News")["id"]
    text = key(["forums.get", "forums.update"], **limit)
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    change = {"operation": "forums.update", "id": forum, "body": {"name": "Bulletin"}}
    read = {"operation": "forums.get", "id": forum}
    with DatabaseState(gate).new_events() as events:
        tried = act(caller, "core.batch", operations=[change, read, read], dryRun=True)
    assert [one["result"]["name"] for one in tried.value["results"]] == ["Bulletin"] * 3
    assert (tried.dry, tried.event, events(), run("forums.get", forum)["name"]) == (True, None, [], "News")
    assert refused(caller, "core.batch", operations=[read, read], dryRun=True).facts["problem"].message == "GRANT_USED_UP"
    act(caller, "forums.get", forum)
    assert refused(caller, "core.batch", operations=[read], dryRun=True).facts["problem"].message == "GRANT_USED_UP"


@pytest.mark.parametrize("limit", [{"bounds": {"forums.get": {"perDay": 1}}}, {"perDay": 5}], ids=["grant", "key"])
def test_a_refused_batch_quotes_nothing_that_it_has_read(
    gate: Gate, key: MakeKey, run: Run, refused: Refuse, limit: dict[str, Any]
) -> None:
    """Its reads do not count: it would be a way to read as often as one likes."""
    forum, other = (run("forums.create", name=name)["id"] for name in ("Secret", "Other"))
    text = key(["forums.get", "forums.update"], **limit)
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    read, name = {"operation": "forums.get", "id": forum, "as": "read"}, {"$ref": "read.name"}
    store = {"operation": "forums.update", "id": other, "as": "stored", "body": {"name": name}}
    for steps in (
        [read, {"operation": "forums.get", "id": name}],
        [read, {"operation": "forums.update", "id": other, "body": {"position": name}}],
        [read, store, {"operation": "forums.update", "id": other, "body": {"position": {"$ref": "stored.name"}}}],
    ):
        answer = refused(caller, "core.batch", operations=steps)
        problem = answer.facts["problem"]
        assert (answer.facts["index"], problem.message, problem.faults) == (len(steps) - 1, "INVALID_VALUE", ())
        assert "The reason is not shown" in problem.detail
        assert "Secret" not in answer.detail + problem.detail
    told = refused(caller, "core.batch", operations=[read, {"operation": "forums.update", "id": other, "body": {"position": "x"}}])
    assert "position must be" in told.detail  # refers to nothing that was read


@pytest.mark.parametrize("limit", [{"forums.get": {"perDay": 3}}, {}], ids=["grant", "key"])
def test_a_batch_that_becomes_a_proposal_counts_what_it_reads(
    gate: Gate, key: MakeKey, run: Run, act: Act, refused: Refuse, clock: Clock, limit: dict[str, Any]
) -> None:
    """The proposal shows what was read: it would be a way to read as often as one likes."""
    forum = run("forums.create", name="News")["id"]
    text = key(
        ["forums.get", "forums.update"],
        bounds={"forums.update": {"level": "propose"}, **limit},
        **({} if limit else {"perDay": 3}),
    )
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    change = {"operation": "forums.update", "id": forum, "body": {"name": "Bulletin"}}
    read = {"operation": "forums.get", "id": forum}
    for operations in ([change, read], [{**change, "body": {"name": "News"}}, read]):  # the second one changes nothing
        shown = act(caller, "core.batch", operations=operations).value
        assert [one["result"]["id"] for one in shown.get("plan", shown)["results"]] == [forum] * 2
    assert refused(caller, "core.batch", operations=[change, read, read]).facts["problem"].message == "GRANT_USED_UP"
    act(caller, "forums.get", forum)
    assert refused(caller, "forums.get", forum).message == "GRANT_USED_UP"
    clock.move(days=1)
    run("proposals.approve", 1)
    act(caller, "forums.get", forum)  # one of three on this day: the approved batch has read once, and changed once
    assert refused(caller, "core.batch", operations=[read, read]).facts["problem"].message == "GRANT_USED_UP"


@pytest.mark.parametrize("limit", [{"forums.update": {"perDay": 3}}, {}], ids=["grant", "key"])
def test_steps_of_a_batch_that_change_nothing_do_not_count(
    gate: Gate, key: MakeKey, run: Run, act: Act, refused: Refuse, limit: dict[str, Any]
) -> None:
    forum = run("forums.create", name="News")["id"]
    text = key(["forums.update"], bounds=limit, **({} if limit else {"perDay": 3}))
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    same, other, back = ({"operation": "forums.update", "id": forum, "body": {"name": n}} for n in ("News", "Bulletin", "News"))
    act(caller, "core.batch", operations=[same, same, other])  # one use
    act(caller, "core.batch", operations=[back, same, same])  # the second
    gate.run(Call("core.batch", caller, {"operations": [same, same]}, token="1", fingerprint="same"))
    act(caller, "core.batch", operations=[same, same, same, other])  # the third
    assert refused(caller, "core.batch", operations=[same, back]).facts["problem"].message == "GRANT_USED_UP"


def test_updates_of_a_document_that_change_nothing_do_not_count(actor: MakeActor, act: Act, run: Run, refused: Refuse) -> None:
    def document(*names: str) -> dict[str, Any]:
        forums = [{"externalId": f"f{n}", "name": name, "description": "<p>Text"} for n, name in enumerate(names)]
        return {"format": "trellis/1", "name": "site", "forums": forums}

    run("structure.apply", document=document("A", "B", "C", "D"))
    caller = actor(["structure.apply", "forums.*", "groups.list"], forums__update={"perDay": 3})
    assert act(caller, "structure.apply", document=document("A", "B", "C", "D")).value["changes"] == []
    assert act(caller, "structure.apply", document=document("W", "X", "C", "D")).value["counts"]["update"] == 2
    assert refused(caller, "structure.apply", document=document("W", "X", "Y", "Z")).message == "GRANT_USED_UP"
    assert act(caller, "structure.apply", document=document("W", "X", "C", "Z")).value["counts"]["update"] == 1


def test_a_plan_counts_nothing_that_it_reads_and_keeps_nothing(actor: MakeActor, act: Act, run: Run, refused: Refuse) -> None:
    caller = actor(["structure.plan", "structure.apply", "forums.*", "groups.list"], forums__list={"perDay": 1})
    document = {"format": "trellis/1", "name": "community", "forums": [{"externalId": "news", "name": "News"}]}
    for _ in range(3):
        assert act(caller, "structure.plan", document=document).value["counts"]["create"] == 1
    assert run("forums.list")["totalResults"] == 0
    act(caller, "structure.apply", document=document)
    assert refused(caller, "structure.apply", document=document).message == "GRANT_USED_UP"


def test_a_limit_of_none_is_never(actor: MakeActor, act: Act, refused: Refuse) -> None:
    caller = actor(["forums.list"], forums__list={"perDay": 0})
    answer = refused(caller, "forums.list")
    assert answer.message == "GRANT_USED_UP"
    assert "may never run forums.list: its limit is 0 times a day. An administrator can change that" in answer.detail


def test_several_uses_at_once_are_told_how_many_are_left(actor: MakeActor, act: Act, refused: Refuse) -> None:
    forums = [{"externalId": f"f{number}", "name": f"Forum {number}"} for number in range(4)]
    document = {"format": "trellis/1", "name": "community", "forums": forums}
    caller = actor(["structure.apply", "forums.list", "groups.list", "forums.create"], forums__create={"perDay": 3})
    assert "This needs 4, and 3 are left today." in refused(caller, "structure.apply", document=document).detail
    for name in ("One", "Two", "Three"):
        act(caller, "forums.create", name=name)
    assert "has already done so today" in refused(caller, "structure.apply", document=document).detail


def test_operations_by_external_ids_are_judged_by_the_grants_that_they_need(actor: MakeActor, act: Act, refused: Refuse) -> None:
    caller = actor(["forums.create", "forums.update"], forums__update={"dryRunOnly": True})
    act(caller, "forums.put_external", externalId="news", name="News")
    assert refused(caller, "forums.put_external", externalId="news", name="Bulletin").message == "DRY_RUN_ONLY"
    assert act(caller, "forums.put_external", externalId="news", name="Bulletin", dryRun=True).dry
