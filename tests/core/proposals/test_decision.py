"""Deciding on proposals: approved ones are carried out as their proposer, if what they touch is as it was."""

from concurrent.futures import wait
from typing import Any

import pytest

from tests.core.proposals.conftest import Act, MakeAgent
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.proposals import find_overdue
from trellis.errors import Refused
from trellis.store import proposals


@pytest.fixture
def news(run: Run) -> int:
    """A forum with two children."""
    news = run("forums.create", name="News")["id"]
    for name in ("One", "Two"):
        run("forums.create", name=name, parentId=news)
    return int(news)


@pytest.fixture
def deletion(agent: Actor, act: Act, news: int) -> int:
    """The proposal to delete that forum, with what is below it."""
    return int(act(agent, "forums.delete", news, deleteChildrenOrMove=-1, call={"reason": "Empty."}).value["id"])


def test_an_approved_call_leaves_one_event_with_both_names(
    agent: Actor, ada: Actor, act: Act, news: int, deletion: int, database: DatabaseState
) -> None:
    with database.new_events() as events:
        result = act(ada, "proposals.approve", deletion, reason="Agreed.")
    done, approved = events()
    assert (done["operation"], done["resourceId"], done["reason"]) == ("forums.delete", news, "Empty.")
    assert done["actor"] == {"type": "key", "id": agent.id, "name": "Agent"}
    assert (done["proposal"], done["approvedBy"]) == (deletion, {"type": "admin", "id": ada.id, "name": "Ada"})
    assert len(done["touched"]) == 2
    assert (approved["type"], approved["actor"]["name"], approved["resourceId"]) == ("proposal.approved", "Ada", deletion)
    assert (approved["proposal"], approved["approvedBy"]) == (None, None)
    assert (result.value["state"], result.value["event"]) == ("approved", done["seq"])
    assert (result.value["closedBy"]["name"], result.value["closedBecause"]) == ("Ada", "Agreed.")
    assert act(agent, "proposals.get", deletion).value == result.value
    assert act.refuse(agent, "forums.get", news).status == 404


def test_an_approval_within_a_batch_counts_what_the_approved_call_changes(
    ada: Actor, act: Act, deletion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve = [{"operation": "proposals.approve", "id": deletion, "body": {}}]
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 3)  # the call deletes three forums, and the proposal changes, too
    assert act.refuse(ada, "core.batch", operations=approve).message == "BATCH_TOO_LARGE"
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 4)
    assert act(ada, "core.batch", operations=approve).value["results"][0]["result"]["state"] == "approved"


def test_what_an_approved_call_returned_is_told_to_its_proposer(agent: Actor, ada: Actor, act: Act) -> None:
    number = act(agent, "forums.create", name="News").value["id"]
    act(ada, "proposals.approve", number)
    made = act(agent, "proposals.get", number).value["result"]
    assert act(agent, "forums.get", made["id"]).value == made


def test_the_result_of_an_approved_call_does_not_say_that_nothing_has_changed(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, deletion: int
) -> None:
    assert act(ada, "proposals.get", deletion).value["plan"]["dryRun"]
    assert act(ada, "proposals.approve", deletion).value["result"] is None  # as a delete returns
    deleted = run("events.list", type="forum.deleted")["results"][0]["seq"]
    restoring = act(make_agent("forums.restore"), "forums.restore", deleted).value
    assert restoring["plan"]["dryRun"]
    result = act(ada, "proposals.approve", restoring["id"]).value["result"]
    assert result == {name: value for name, value in restoring["plan"].items() if name != "dryRun"}


def test_trying_an_approval_changes_nothing(ada: Actor, act: Act, deletion: int, database: DatabaseState) -> None:
    with database.unchanged():
        assert act(ada, "proposals.approve", deletion, dryRun=True).dry


def test_trying_an_approval_shows_nothing_that_the_call_reads(make_agent: MakeAgent, ada: Actor, act: Act, news: int) -> None:
    """Reads that are rolled back do not count as uses: it would be a way to read as often as one likes."""
    bounds = {"forums.update": {"level": "propose"}, "forums.get": {"perDay": 2}}
    agent = make_agent("forums.update", grants=("forums.get",), bounds=bounds)
    steps = [{"operation": "forums.update", "id": news, "body": {"name": "Bulletin"}}, {"operation": "forums.get", "id": news}]
    number = act(agent, "core.batch", operations=steps).value["id"]
    tried = act(ada, "proposals.approve", number, dryRun=True).value
    assert (tried["state"], tried["event"], tried["result"]) == ("approved", None, None)
    approved = act(ada, "proposals.approve", number).value  # the second use
    assert approved["result"]["results"][1]["result"]["name"] == "Bulletin"
    assert act.refuse(agent, "forums.get", news).message == "GRANT_USED_UP"


@pytest.fixture
def storing(make_agent: MakeAgent, act: Act, run: Run, news: int) -> int:
    """A proposed batch that would store in another forum what it reads, of which each read counts."""
    bounds = {"forums.update": {"level": "propose"}, "forums.get": {"perDay": 2}}
    agent = make_agent("forums.update", grants=("forums.get",), bounds=bounds)
    read = {"operation": "forums.get", "id": news, "as": "read"}
    other = run("forums.create", name="Other")["id"]
    store = {"operation": "forums.update", "id": other, "body": {"name": {"$ref": "read.name"}}}
    return int(act(agent, "core.batch", operations=[read, store]).value["id"])


def test_a_refused_approval_shows_nothing_that_the_call_reads(ada: Actor, act: Act, run: Run, news: int, storing: int) -> None:
    run("forums.update", news, name="Secret")
    refused = act.refuse(ada, "proposals.approve", storing)
    assert (refused.message, refused.facts["differences"]) == ("PROPOSAL_OUTDATED", [])
    assert "another name" in refused.detail
    assert "Secret" not in str(refused.facts) + refused.detail


@pytest.mark.parametrize("raw", [{}, {"dryRun": True}], ids=["kept", "dry"])
def test_no_batch_approves_a_call_with_counted_reads(ada: Actor, act: Act, run: Run, storing: int, raw: dict[str, Any]) -> None:
    """Its other operations could quote what was read, and it may be refused: it would be a way to read as often as one likes."""
    third = run("forums.create", name="Third")["id"]
    approve = {"operation": "proposals.approve", "id": storing, "as": "approved"}
    quote = {"operation": "forums.update", "id": third, "body": {"position": {"$ref": "approved.result.results"}}}
    for others in ([], [quote], [{"operation": "proposals.get", "id": storing}]):
        refused = act.refuse(ada, "core.batch", operations=[approve, *others], **raw)
        assert refused.facts["index"] == 0
        assert "Approve it in a call of its own" in refused.detail
        assert "News" not in str(refused.facts) + refused.detail
    assert act(ada, "proposals.approve", storing).value["result"]["results"][0]["result"]["name"] == "News"


def test_a_rejection_tells_why_and_does_nothing(
    agent: Actor, ada: Actor, act: Act, news: int, deletion: int, database: DatabaseState
) -> None:
    assert act.refuse(ada, "proposals.reject", deletion).message == "MISSING_VALUE"
    with database.new_events() as events:
        act(ada, "proposals.reject", deletion, reason="Still in use.")
    assert [(event["type"], event["actor"]["name"]) for event in events()] == [("proposal.rejected", "Ada")]
    told = act(agent, "proposals.get", deletion).value
    assert (told["state"], told["closedBecause"], told["task"]["status"]) == ("rejected", "Still in use.", "denied")
    assert act(agent, "forums.get", news).value["name"] == "News"
    for operation, raw in (("approve", {}), ("reject", {"reason": "No."}), ("withdraw", {})):
        refused = act.refuse(ada, f"proposals.{operation}", deletion, **raw)
        assert (refused.message, refused.facts) == ("PROPOSAL_CLOSED", {"state": "rejected"})


def test_its_key_withdraws_it_and_no_other(
    agent: Actor, make_agent: MakeAgent, act: Act, deletion: int, database: DatabaseState
) -> None:
    other, approver = make_agent("forums.delete"), make_agent(grants=("proposals.approve",))
    for caller in (other, approver):
        assert act.refuse(caller, "proposals.withdraw", deletion).message == "INVALID_ID"
    with database.new_events() as events:
        assert act(agent, "proposals.withdraw", deletion).value["state"] == "withdrawn"
    assert [event["type"] for event in events()] == ["proposal.withdrawn"]


def test_a_key_sees_its_own_proposals_and_one_that_decides_sees_all(
    agent: Actor, make_agent: MakeAgent, act: Act, deletion: int
) -> None:
    other, rejecter = make_agent("forums.create", name="Other"), make_agent(grants=("proposals.reject",))
    act(other, "forums.create", name="Garden")
    assert [one["id"] for one in act(agent, "proposals.list").value["results"]] == [deletion]
    assert act.refuse(other, "proposals.get", deletion).message == "INVALID_ID"
    assert act.refuse(other, "proposals.list", keyId=agent.id).status == 404
    found = act(rejecter, "proposals.list").value
    assert [one["proposer"]["name"] for one in found["results"]] == ["Other", "Agent"]
    assert act(rejecter, "proposals.list", keyId=agent.id, state="open", operation="forums.delete").value["totalResults"] == 1
    assert act(rejecter, "proposals.list", state="approved").value["results"] == []
    assert act(rejecter, "proposals.get", deletion).value["about"] == "News"


def test_a_key_sees_only_its_own_proposals_once_its_grant_to_decide_has_ended(
    make_agent: MakeAgent, act: Act, deletion: int, clock: Clock
) -> None:
    decider = make_agent(grants=("proposals.approve",), name="Decider", bounds={"proposals.approve": {"until": "1d"}})
    assert act(decider, "proposals.get", deletion).value["about"] == "News"
    clock.move(days=1)
    assert act(decider, "proposals.list").value["results"] == []
    assert act.refuse(decider, "proposals.get", deletion).message == "INVALID_ID"


def test_nobody_decides_on_what_it_has_proposed_itself(make_agent: MakeAgent, ada: Actor, act: Act) -> None:
    own = make_agent("forums.create", grants=("proposals.approve", "proposals.reject"))
    number = act(own, "forums.create", name="News").value["id"]
    theirs = act(ada, "proposals.create", operation="forums.create", input={"name": "Garden"}).value["id"]
    assert act.refuse(own, "proposals.approve", number).message == "OWN_PROPOSAL"
    assert act.refuse(own, "proposals.reject", number, reason="No.").message == "OWN_PROPOSAL"
    assert act.refuse(own, "core.batch", operations=[{"operation": "proposals.approve", "id": number}]).status == 409
    assert act.refuse(ada, "proposals.approve", theirs).message == "OWN_PROPOSAL"
    other = make_agent(grants=("proposals.approve",), name="Reviewer")
    assert act(own, "proposals.get", number).value["approvers"] == ["admin", "key"]
    act(other, "proposals.approve", number)
    act(own, "proposals.approve", theirs)


def test_nobody_decides_on_its_own_by_approving_that_another_does(make_agent: MakeAgent, ada: Actor, act: Act) -> None:
    own = make_agent("forums.create", grants=("proposals.approve",), name="Own")
    other = make_agent("proposals.approve", name="Other")
    number = act(own, "forums.create", name="News").value["id"]
    approval = act(other, "proposals.approve", number).value
    assert (approval["operation"], approval["target"]) == ("proposals.approve", number)
    refused = act.refuse(own, "proposals.approve", approval["id"])
    assert refused.facts["problem"].message == "OWN_PROPOSAL"
    act(ada, "proposals.approve", approval["id"])
    told = act(own, "proposals.get", number).value
    assert (told["state"], told["closedBy"]["name"]) == ("approved", "Other")


def test_nobody_decides_on_its_own_by_approving_that_others_do_however_many_are_in_between(
    make_agent: MakeAgent, ada: Actor, act: Act
) -> None:
    own = make_agent("forums.create", grants=("proposals.approve",), name="Own")
    number = act(own, "forums.create", name="News").value["id"]
    for name in ("First", "Second"):
        number = act(make_agent("proposals.approve", name=name), "proposals.approve", number).value["id"]
    refused = act.refuse(own, "proposals.approve", number)
    assert refused.facts["problem"].facts["problem"].message == "OWN_PROPOSAL"
    batch = act(make_agent("proposals.approve"), "core.batch", operations=[{"operation": "proposals.approve", "id": number}]).value
    assert act.refuse(own, "proposals.approve", batch["id"]).message == "PROPOSAL_REFUSED"
    act(ada, "proposals.approve", batch["id"])
    assert [one["state"] for one in act(ada, "proposals.list").value["results"]] == ["approved"] * 4


def test_it_is_refused_once_its_proposer_may_not_do_it_any_more(
    agent: Actor, ada: Actor, act: Act, run: Run, news: int, deletion: int, clock: Clock
) -> None:
    def refused() -> Refused:
        found = act.refuse(ada, "proposals.approve", deletion)
        assert (found.message, found.status) == ("PROPOSAL_REFUSED", 409)
        problem = found.facts["problem"]
        assert isinstance(problem, Refused)
        assert problem.detail in found.detail
        return problem

    run("keys.update", agent.id, ungrant=["forums.delete"])
    assert (refused().message, refused().facts) == ("NO_PERMISSION", {"missingOperation": "forums.delete"})
    run("keys.update", agent.id, grant=["forums.delete"], bounds={"forums.delete": {"level": "propose", "until": "1d"}})
    clock.move(days=1)
    assert refused().message == "GRANT_ENDED"
    run("keys.update", agent.id, bounds={"forums.delete": {"dryRunOnly": True}})
    assert refused().message == "DRY_RUN_ONLY"
    run("keys.update", agent.id, bounds={}, expires="1h")
    run("keys.pause", agent.id)
    assert (refused().message, "is paused. Resume it first." in refused().detail) == ("INVALID_API_KEY", True)
    clock.move(hours=1)
    assert (refused().message, "expired at" in refused().detail) == ("INVALID_API_KEY", True), "resuming would not help"
    run("keys.revoke", agent.id)
    assert "revoked" in refused().detail
    assert run("proposals.get", deletion)["state"] == "open"


def test_it_is_refused_once_its_target_is_outside_of_what_the_grant_is_for(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run
) -> None:
    garden, attic = (run("forums.create", name=name)["id"] for name in ("Garden", "Attic"))
    roses = run("forums.create", name="Roses", parentId=garden)["id"]
    bound = {"level": "propose", "under": [f"forums:{garden}"]}
    agent = make_agent(grants=("forums.delete", "forums.create"), bounds={"forums.delete": bound, "forums.create": bound})
    assert act.refuse(agent, "forums.delete", attic).message == "INVALID_ID"
    assert act.refuse(agent, "forums.create", name="Outside").message == "OUT_OF_BOUNDS"
    number = act(agent, "forums.delete", roses).value["id"]
    below = act(agent, "forums.create", name="Beds", parentId=garden).value["id"]
    run("forums.update", roses, parentId=attic)
    refused = act.refuse(ada, "proposals.approve", number)
    assert (refused.message, refused.facts["problem"].message) == ("PROPOSAL_REFUSED", "INVALID_ID")
    run(
        "keys.update",
        agent.id,
        bounds={name: bound | {"under": [f"forums:{attic}"]} for name in ("forums.delete", "forums.create")},
    )
    assert act.refuse(ada, "proposals.approve", below).facts["problem"].message == "INVALID_PARENT"
    assert act.refuse(ada, "proposals.approve", number).message == "PROPOSAL_OUTDATED"


def test_it_can_be_approved_where_its_proposer_may_do_it_alone_by_now(
    agent: Actor, ada: Actor, act: Act, run: Run, deletion: int
) -> None:
    run("keys.update", agent.id, bounds={})
    assert act(ada, "proposals.approve", deletion).value["state"] == "approved"


@pytest.mark.parametrize(
    ("operation", "raw", "field"),
    [
        ("forums.update", {"name": "Bulletin"}, "name"),
        ("forums.update", {"parentId": 1}, "parentId"),
        ("forums.order", {"ids": [2, 1, 3]}, None),
    ],
)
def test_it_is_refused_if_what_it_touches_has_changed_and_told_how(
    run: Run, agent: Actor, ada: Actor, act: Act, operation: str, raw: Any, field: str | None
) -> None:
    run("forums.create", name="Garden")
    news = run("forums.create", name="News")["id"]
    run("forums.create", name="Else")
    number = act(agent, "forums.delete", news).value["id"]
    run(operation, news if field else None, **raw)
    refused = act.refuse(ada, "proposals.approve", number)
    assert (refused.message, refused.status) == ("PROPOSAL_OUTDATED", 409)
    if field:
        assert [(one["operation"], one["id"]) for one in refused.facts["changes"]] == [(operation, news)]
        assert field in [one["field"] for one in refused.facts["differences"]]
        assert f"event {refused.facts['changes'][0]['event']}" in refused.detail
    else:
        assert [one["field"] for one in refused.facts["differences"]] == ["position"]


def test_what_is_below_counts_too(run: Run, ada: Actor, act: Act, news: int, deletion: int) -> None:
    def changes() -> list[Any]:
        refused = act.refuse(ada, "proposals.approve", deletion)
        assert refused.message == "PROPOSAL_OUTDATED"
        return [(one["operation"], one["id"]) for one in refused.facts["changes"]]

    run("forums.update", news + 1, description="Changed")
    assert changes() == [("forums.update", news + 1)]
    run("forums.create", name="Three", parentId=news)
    assert ("forums.create", news + 3) in changes()


def test_what_it_does_not_touch_may_change(run: Run, agent: Actor, ada: Actor, act: Act, news: int, deletion: int) -> None:
    more = act(agent, "forums.create", name="More").value["id"]
    run("forums.create", name="Garden")
    run("calendars.create", name="Meetings")
    for number in (deletion, more):
        assert act(ada, "proposals.approve", number).value["state"] == "approved"


def test_its_target_may_be_gone(run: Run, ada: Actor, news: int, deletion: int, act: Act) -> None:
    run("forums.delete", news, deleteChildrenOrMove=-1)
    refused = act.refuse(ada, "proposals.approve", deletion)
    assert (refused.message, refused.facts["problem"].message) == ("PROPOSAL_REFUSED", "INVALID_ID")


def test_an_approved_batch_is_one_change_set_and_undone_as_one(agent: Actor, ada: Actor, act: Act, run: Run, news: int) -> None:
    steps = [
        {"operation": "forums.create", "body": {"name": "Board"}, "as": "board"},
        {"operation": "forums.update", "id": news, "body": {"parentId": {"$ref": "board.id"}}},
    ]
    number = act(agent, "core.batch", operations=steps, call={"change_set": "tidy"}).value["id"]
    run("calendars.create", name="Meetings")
    result = act(ada, "proposals.approve", number)
    done = run("events.list", order="newest", limit=3)["results"]
    assert [event["operation"] for event in done] == ["proposals.approve", "forums.update", "forums.create"]
    assert {(event["changeSet"], event["proposal"]) for event in done} == {(None, None), (done[1]["changeSet"], number)}
    assert done[1]["changeSet"] is not None
    assert result.value["result"]["results"][0]["result"]["name"] == "Board"
    run("changesets.restore", done[1]["changeSet"])
    assert run("forums.get", news)["parentId"] is None


def test_two_decisions_at_once_are_one(gate: Gate, ada: Actor, agent: Actor, act: Act, news: int, database: DatabaseState) -> None:
    rounds: tuple[list[tuple[str, Actor, dict[str, Any]]], ...] = (
        [("approve", ada, {})] * 2,
        [("approve", ada, {}), ("reject", ada, {"reason": "No."})],
        [("withdraw", agent, {}), ("approve", ada, {})],
    )
    for number, decisions in enumerate(rounds, 1):
        act(agent, "forums.create", name=f"Forum {number}")
        with database.new_events() as events:
            futures = [gate.submit(Call(f"proposals.{verb}", actor, raw, number)) for verb, actor, raw in decisions]
            wait(futures)
        failed = [found for future in futures if (found := future.exception()) is not None]
        assert [one.message for one in failed if isinstance(one, Refused)] == ["PROPOSAL_CLOSED"]
        (decided,) = [event["type"] for event in events() if event["resource"] == "proposals"]
        assert len([event for event in events() if event["resource"] == "forums"]) == (decided == "proposal.approved")


def test_it_cannot_be_approved_from_the_moment_on_at_which_it_expires(
    gate: Gate, ada: Actor, act: Act, run: Run, deletion: int, clock: Clock, database: DatabaseState
) -> None:
    clock.move(days=7, seconds=-1)
    assert find_overdue(gate) == []
    assert act(ada, "proposals.approve", deletion, dryRun=True).dry
    clock.move(seconds=1)
    refused = act.refuse(ada, "proposals.approve", deletion)
    assert (refused.message, refused.facts) == ("PROPOSAL_CLOSED", {"state": "expired"})
    assert run("proposals.list", state="expired")["totalResults"] == 1
    assert run("proposals.list", state="open")["totalResults"] == 0
    with database.new_events() as events:
        for _ in range(2):
            for call in find_overdue(gate):
                gate.run(call)
    assert [(event["type"], event["actor"]["name"]) for event in events()] == [("proposal.expired", "housekeeping")]
    clock.move(days=-7)
    assert run("proposals.get", deletion)["state"] == "expired"


def test_closed_proposals_are_purged_and_open_ones_are_not(gate: Gate, agent: Actor, act: Act, run: Run, clock: Clock) -> None:
    for number in range(1, 7):
        act(agent, "forums.create", name=f"Forum {number}")
    for number in range(1, 5):
        run("proposals.withdraw", number)
        clock.move(hours=1)
    at = gate.now()
    assert gate.store.write(lambda tx: proposals.purge(tx, "2026-01-31T10:00:00.000Z", 2)).result() == 2
    assert [one["id"] for one in run("proposals.list")["results"]] == [6, 5, 4, 3]
    assert gate.store.write(lambda tx: proposals.purge(tx, at, 1000)).result() == 2
    assert [one["id"] for one in run("proposals.list")["results"]] == [6, 5]


def test_of_large_ones_that_are_closed_little_is_kept(agent: Actor, ada: Actor, act: Act, run: Run) -> None:
    steps = [{"operation": "forums.create", "body": {"name": "News", "description": "x" * 50_000}}] * 3
    number = act(agent, "core.batch", operations=steps).value["id"]
    assert len(run("proposals.get", number)["input"]["operations"]) == 3
    act(ada, "proposals.reject", number, reason="Too much.")
    kept = run("proposals.get", number)
    assert (kept["input"], kept["plan"], kept["effects"]) == (None, None, [])
    assert kept["counts"]["created"] == 3


@pytest.mark.parametrize("sign", ["x", "\N{SEEDLING}"])
def test_the_size_of_those_that_are_closed_is_counted_in_bytes(agent: Actor, ada: Actor, act: Act, gate: Gate, sign: str) -> None:
    limit = 64 * 1024
    number = act(agent, "forums.create", name="News", description=sign * (limit // 4 // len(sign.encode()))).value["id"]
    act(ada, "proposals.reject", number, reason="Later.")
    larger = act(agent, "forums.create", name="News", description=sign * (limit // 2 // len(sign.encode()))).value["id"]
    act(ada, "proposals.reject", larger, reason="Too much.")
    with gate.store.reading() as tx:
        assert "input" in proposals.find_content(tx, number)
        assert "input" not in proposals.find_content(tx, larger)


@pytest.mark.parametrize(
    "bound", [{"dryRunOnly": True}, {"level": "propose"}, {"until": "1d"}], ids=lambda bound: next(iter(bound))
)
def test_a_key_that_may_not_approve_now_is_no_approver(
    agent: Actor, act: Act, key: MakeKey, clock: Clock, bound: dict[str, Any]
) -> None:
    key(["proposals.approve"], name="Limited", bounds={"proposals.approve": bound})
    clock.move(days=1)
    made = act(agent, "forums.create", name="News").value
    assert made["approvers"] == ["admin"]
    key(["proposals.approve"], name="Keeper")
    assert act(agent, "proposals.get", made["id"]).value["approvers"] == ["admin", "key"]


@pytest.mark.parametrize("decision", ["approve", "reject", "withdraw"])
def test_a_key_in_the_reason_of_a_decision_is_kept_nowhere(
    agent: Actor, ada: Actor, act: Act, deletion: int, key: MakeKey, database: DatabaseState, decision: str
) -> None:
    text = key(["forums.list"], name="Leaked")
    by = agent if decision == "withdraw" else ada
    with database.new_events() as events:
        closed = act(by, f"proposals.{decision}", deletion, reason=f"It was sent with {text}.").value
    assert closed["closedBecause"] == f"It was sent with {text[:12]}_[hidden]."
    assert text[13:] not in str(events())
    assert text[13:] not in str(database.rows()["proposals"])
