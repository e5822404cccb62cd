"""Proposing: a call that a key may not run by itself is tried, undone, and kept until somebody decides."""

from dataclasses import replace
from typing import Any

import pytest

from tests.community import Community
from tests.core.proposals.conftest import Act, MakeAgent
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.version import record_version

PASSWORD = "correct horse battery staple"


@pytest.fixture
def news(run: Run) -> int:
    """A forum with a child and a grandchild."""
    news = run("forums.create", name="News")["id"]
    below = run("forums.create", name="Below", parentId=news)["id"]
    run("forums.create", name="Deep", parentId=below)
    return int(news)


def test_a_call_is_proposed_with_what_it_would_do(
    agent: Actor, act: Act, run: Run, news: int, database: DatabaseState, clock: Clock
) -> None:
    record = run("forums.get", news)
    with database.new_events() as events:
        result = act(agent, "forums.delete", news, deleteChildrenOrMove=-1, call={"reason": "Empty."})
    made = result.value
    assert [(event["type"], event["actor"]["name"], event["resourceId"]) for event in events()] == [
        ("proposal.created", "Agent", 1)
    ]
    assert run("forums.get", news) == record
    assert (made["id"], made["state"], made["operation"], made["target"], made["about"]) == (
        1,
        "open",
        "forums.delete",
        news,
        "News",
    )
    assert made["proposer"] == {"type": "key", "id": agent.id, "name": "Agent"}
    assert made["counts"] == {"created": 0, "changed": 0, "moved": 0, "deleted": 3}
    assert made["plan"]["deleted"]["count"] == 3
    assert made["etag"] == f'"{record_version(record)}"'
    assert (made["createdAt"], made["expiresAt"]) == (clock.text, "2026-02-07T09:30:00.000Z")
    assert (made["reason"], made["approvers"], made["input"]) == ("Empty.", ["admin"], {"deleteChildrenOrMove": -1})
    assert made["task"]["status"] == "pending"
    assert [one["before"]["name"] for one in made["effects"]] == ["News"]
    assert (result.event, result.dry, result.verb and result.verb.status) == (events()[0]["seq"], False, 202)
    assert events()[0]["after"]["state"] == "open"
    assert "input" not in events()[0]["after"]


def test_it_expires_by_the_clock_after_the_clock_was_ahead(agent: Actor, news: int, act: Act, run: Run, clock: Clock) -> None:
    clock.move(days=30)
    run("forums.create", name="Ahead")
    clock.move(days=-30)
    made = act(agent, "forums.delete", news, deleteChildrenOrMove=-1).value
    assert made["expiresAt"] == "2026-02-07T09:30:00.000Z"


def test_what_would_be_refused_is_refused_when_it_is_proposed(agent: Actor, news: int, act: Act) -> None:
    assert act.refuse(agent, "forums.delete", news).message == "HAS_CHILDREN"
    assert act.refuse(agent, "forums.delete", 999).message == "INVALID_ID"
    assert act.refuse(agent, "forums.create").message == "NO_TITLE"
    assert act.refuse(agent, "forums.update", news, name="Bulletin", call={"expected": ("other",)}).message == "PRECONDITION_FAILED"
    assert act.refuse(agent, "categories.create", name="Files").message == "NO_PERMISSION"
    assert act.refuse(agent, "proposals.create", operation="forums.create", input={"name": "News"}).message == "NO_PERMISSION"


def test_a_dry_run_is_a_dry_run(agent: Actor, act: Act, news: int, database: DatabaseState) -> None:
    with database.unchanged():
        result = act(agent, "forums.delete", news, deleteChildrenOrMove=-1, dryRun=True)
    assert (result.dry, result.value["deleted"]["count"]) == (True, 3)


def test_what_would_change_nothing_is_answered_at_once(
    agent: Actor, act: Act, run: Run, news: int, database: DatabaseState
) -> None:
    with database.unchanged():
        result = act(agent, "forums.update", news, name="News")
    assert (result.value, result.event, result.verb and result.verb.status) == (run("forums.get", news), None, 200)


def test_the_same_proposal_is_one_for_as_long_as_it_is_open(
    agent: Actor, make_agent: MakeAgent, act: Act, run: Run, news: int, database: DatabaseState
) -> None:
    first = act(agent, "forums.update", news, name="Bulletin").value
    with database.unchanged():
        again = act(agent, "forums.update", news, name="Bulletin", call={"reason": "Once more."})
    assert (again.value, again.event) == (first, None)
    other = make_agent("forums.update")
    assert act(other, "forums.update", news, name="Bulletin").value["id"] == 2
    assert act(agent, "forums.update", news, name="Board").value["id"] == 3
    run("proposals.reject", 1, reason="No.")
    assert act(agent, "forums.update", news, name="Bulletin").value["id"] == 4


def test_one_that_nobody_can_approve_any_more_gives_way_to_a_new_one(
    agent: Actor, act: Act, run: Run, news: int, database: DatabaseState
) -> None:
    first = act(agent, "forums.update", news, name="Bulletin").value
    run("forums.update", news, minContent=2)
    assert act.refuse(TERMINAL, "proposals.approve", first["id"]).message == "PROPOSAL_OUTDATED"
    with database.new_events() as events:
        again = act(agent, "forums.update", news, name="Bulletin")
    assert [(event["type"], event["resourceId"]) for event in events()] == [("proposal.withdrawn", 1), ("proposal.created", 2)]
    assert (again.value["id"], again.value["state"], again.verb and again.verb.status) == (2, "open", 202)
    with database.unchanged():
        assert act(agent, "forums.update", news, name="Bulletin").value == again.value
    run("proposals.approve", 2)
    record = run("forums.get", news)
    assert (record["name"], record["minContent"]) == ("Bulletin", 2)


def test_one_that_would_inherit_something_else_by_now_gives_way_too(agent: Actor, act: Act, run: Run, news: int) -> None:
    act(agent, "forums.create", name="Inside", parentId=news)
    run("forums.update", news, permissions={"view": "*"})
    assert act(agent, "forums.create", name="Inside", parentId=news).value["id"] == 2
    run("forums.delete", news, deleteChildrenOrMove=-1)
    assert act.refuse(agent, "forums.create", name="Inside", parentId=news).message == "INVALID_PARENT"


@pytest.fixture
def five_at_most(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many proposals of one key may be open at once."""
    monkeypatch.setattr(gate.calls, "environment", replace(gate.environment, proposals_per_key=5))


@pytest.mark.usefixtures("five_at_most")
def test_at_the_limit_one_can_still_give_way(agent: Actor, act: Act, run: Run, news: int) -> None:
    act(agent, "forums.update", news, name="Bulletin")
    for number in range(4):
        act(agent, "forums.create", name=f"Forum {number}")
    run("forums.update", news, minContent=2)
    made = act(agent, "forums.update", news, name="Bulletin").value
    assert (made["id"], made["state"]) == (6, "open")


def test_it_is_the_same_however_it_is_sent(agent: Actor, act: Act, news: int) -> None:
    """A query has texts where JSON has numbers, and fields have older names."""
    ways: list[dict[str, Any]] = [{"deleteChildrenOrMove": -1}, {"deleteChildrenOrMove": "-1", "dryRun": "0"}]
    assert [act(agent, "forums.delete", news, **raw).value["id"] for raw in ways] == [1, 1]
    names: list[dict[str, Any]] = [{"name": "Bulletin", "parentId": None}, {"parentId": "", "title": " Bulletin "}]
    assert [act(agent, "forums.create", None, **raw).value["id"] for raw in names] == [2, 2]
    assert act(agent, "forums.create", None, name="Bulletin", parentId=news).value["id"] == 3


def test_a_batch_is_the_same_however_its_operations_are_written(agent: Actor, act: Act, news: int) -> None:
    """Each is compared by what it means; references, which cannot be followed yet, by how they are written."""

    def propose(*, id: Any = news, ref: str = "first.id", parent: str = "parentId", **body: Any) -> int:
        first = {"operation": "forums.create", "as": "first", "body": body}
        second = {"operation": "forums.create", "body": {"name": "Below", parent: {"$ref": ref}}}
        third = {"operation": "forums.update", "id": id, "body": {"title": "Renamed "}}
        return int(act(agent, "core.batch", operations=[first, second, third]).value["id"])

    assert propose(name="Bulletin") == 1
    assert propose(title=" Bulletin ") == propose(name="Bulletin", id=str(news)) == 1
    assert propose(name="Bulletin", parentId=news) == propose(name="Bulletin", parentId=str(news)) == 2
    assert propose(name="Other") == 3
    assert propose(name="Bulletin", ref="first.parentId") == 4
    assert propose(name="Bulletin", parent="parent") == 1
    assert propose(name="Bulletin", parent="parent", ref="first.parentId") == 4
    assert {one["state"] for one in act(agent, "proposals.list").value["results"]} == {"open"}


def test_one_that_has_expired_can_be_proposed_again(agent: Actor, act: Act, clock: Clock, news: int) -> None:
    act(agent, "forums.update", news, name="Bulletin")
    clock.move(days=7)
    assert act(agent, "forums.update", news, name="Bulletin").value["id"] == 2


def test_an_idempotency_key_gets_the_first_answer(agent: Actor, act: Act, run: Run, database: DatabaseState) -> None:
    sent = {"token": "t-1", "fingerprint": "f", "idempotency_key": "t-1"}
    first = act(agent, "forums.create", name="News", call=sent)
    assert first.value["idempotencyKey"] == "t-1"
    run("proposals.approve", 1)
    run("keys.update", agent.id, bounds={})
    with database.unchanged():
        again = act(agent, "forums.create", name="News", call=sent)
    assert (again.replayed, again.value, again.verb and again.verb.status) == (True, first.value, 202)


@pytest.mark.usefixtures("five_at_most")
def test_a_key_has_so_many_open_proposals_at_most(
    agent: Actor, make_agent: MakeAgent, act: Act, run: Run, news: int, database: DatabaseState
) -> None:
    for number in range(5):
        act(agent, "forums.create", name=f"Forum {number}")
    for number in range(3):
        refused = act.refuse(agent, "forums.create", name=f"More {number}")
        assert (refused.message, refused.status, refused.facts) == ("TOO_MANY_PROPOSALS", 409, {"limit": 5})
    with database.unchanged():
        same = act(agent, "forums.update", news, name="News")  # there is nothing to propose
    assert (same.verb and same.verb.name, same.value["name"]) == ("update", "News")
    act(make_agent("forums.create"), "forums.create", name="Another key's")
    run("proposals.withdraw", 1)
    act(agent, "forums.create", name="More")


def test_a_batch_is_proposed_whole_if_one_operation_of_it_needs_approval(
    agent: Actor, act: Act, run: Run, news: int, database: DatabaseState
) -> None:
    operations = [
        {"operation": "calendars.create", "body": {"name": "Meetings"}, "as": "meetings"},
        {"operation": "forums.create", "body": {"name": {"$ref": "meetings.name"}}, "as": "board"},
        {"operation": "forums.update", "id": news, "body": {"parentId": {"$ref": "board.id"}}},
    ]
    with database.new_events() as events:
        made = act(agent, "core.batch", operations=operations).value
    assert [event["type"] for event in events()] == ["proposal.created"]
    assert (made["operation"], made["counts"]) == ("core.batch", {"created": 2, "changed": 0, "moved": 1, "deleted": 0})
    assert [one["operation"] for one in made["plan"]["results"]] == ["calendars.create", "forums.create", "forums.update"]
    assert run("calendars.list", search="Meetings")["totalResults"] == 0
    refused = act.refuse(agent, "core.batch", operations=[operations[0], {"operation": "forums.delete", "id": 999}])
    assert (refused.message, refused.facts["index"]) == ("BATCH_REFUSED", 1)
    alone = act(agent, "core.batch", operations=operations[:1])
    assert alone.value["results"][0]["result"]["name"] == "Meetings"


def test_an_apply_is_proposed_whole(make_agent: MakeAgent, act: Act, run: Run, news: int) -> None:
    agent = make_agent("forums.update", grants=("structure.apply", "structure.plan", "forums.create", "forums.list", "groups.list"))
    document = {"format": "trellis/1", "name": "site", "forums": [{"externalId": "board", "name": "Board"}]}
    made = act(agent, "structure.apply", document=document)
    assert made.value["counts"]["create"] == 1  # which the key may do by itself
    agent = make_agent("structure.apply", "forums.create", grants=("forums.update", "forums.list", "groups.list"))
    document["forums"] = [{"externalId": "board", "name": "Bulletin"}, {"externalId": "garden", "name": "Garden"}]
    made = act(agent, "structure.apply", document=document)
    assert made.value["counts"] == {"created": 1, "changed": 1, "moved": 0, "deleted": 0}
    assert [one["action"] for one in made.value["plan"]["changes"]] == ["update", "create"]
    run("proposals.approve", made.value["id"])
    assert run("forums.list", search="Garden")["totalResults"] == 1


def test_a_password_is_never_kept(agent: Actor, make_agent: MakeAgent, act: Act, news: int) -> None:
    applying = make_agent("forums.create", "structure.apply", grants=("forums.update", "forums.list", "groups.list"))
    document = {"format": "trellis/1", "name": "site", "forums": [{"externalId": "a", "name": "A", "password": PASSWORD}]}
    steps: Any = [{"operation": "forums.update", "id": news, "body": {"password": PASSWORD}}]
    assert act.refuse(agent, "forums.update", news, password=PASSWORD).message == "PASSWORD_IN_PROPOSAL"
    assert act.refuse(agent, "core.batch", operations=steps).message == "PASSWORD_IN_PROPOSAL"
    assert act.refuse(applying, "structure.apply", document=document).message == "PASSWORD_IN_PROPOSAL"
    assert act(agent, "forums.update", news, password=PASSWORD, dryRun=True).dry


@pytest.mark.parametrize("verb", ["apply", "plan"])
def test_a_password_in_a_document_within_a_batch_is_never_kept(make_agent: MakeAgent, act: Act, news: int, verb: str) -> None:
    grants = ("forums.get", "forums.list", "groups.list", "structure.plan")
    agent = make_agent("forums.create", "forums.update", "structure.apply", grants=grants)
    forum: dict[str, Any] = {"externalId": "a", "name": "A", "password": PASSWORD}
    document = {"format": "trellis/1", "name": "site", "forums": [forum]}
    steps: Any = [
        {"operation": "forums.get", "id": news, "as": "news"},
        {"operation": f"structure.{verb}", "body": {"document": document}},
        {"operation": "forums.update", "id": news, "body": {"name": "Bulletin"}},
    ]
    assert act.refuse(agent, "core.batch", operations=steps).message == "PASSWORD_IN_PROPOSAL"
    forum["name"] = {"$ref": "news.name"}  # so that the document cannot be read before the batch runs
    assert "A password cannot be proposed" in act.refuse(agent, "core.batch", operations=steps).detail
    del forum["password"]
    made = act(agent, "core.batch", operations=steps).value
    assert made["state"] == "open"
    assert PASSWORD not in str(made)


def test_a_number_that_cannot_be_kept_is_refused(agent: Actor, act: Act) -> None:
    refused = act.refuse(agent, "core.batch", operations=[{"operation": "forums.create", "body": {"name": "A", "id": 10**40}}])
    assert refused.status == 400


@pytest.mark.parametrize("verb", ["reject", "batch"])
def test_a_key_in_the_reason_of_a_decision_that_is_only_proposed_is_kept_nowhere(  # fixtures
    agent: Actor, make_agent: MakeAgent, act: Act, news: int, key: MakeKey, database: DatabaseState, verb: str
) -> None:
    text = key(["forums.list"], name="Leaked")
    number = act(agent, "forums.update", news, name="Garden").value["id"]
    clerk = make_agent("proposals.reject", name="Clerk")
    why = {"reason": f"It was sent with {text}."}
    step = {"operation": "proposals.reject", "id": number, "body": why}
    made = act(clerk, "core.batch", operations=[step]) if verb == "batch" else act(clerk, "proposals.reject", number, **why)
    assert text[13:] not in str(made.value)
    assert text[13:] not in str(database.rows()["proposals"])
    act(TERMINAL, "proposals.approve", made.value["id"])
    closed = act(TERMINAL, "proposals.get", number).value
    assert (closed["state"], closed["closedBecause"]) == ("rejected", f"It was sent with {text[:12]}_[hidden].")


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(("",), id="only weak tags"),
        pytest.param(("x" * 300,), id="a long tag"),
        pytest.param(tuple(f"{number:024}" for number in range(201)), id="many tags"),
    ],
)
def test_a_condition_that_is_not_met_is_refused_whatever_it_is(
    act: Act, agent: Actor, community: Community, expected: tuple[str, ...]
) -> None:
    for more in ({"dryRun": True}, {}):
        refused = act.refuse(agent, "forums.update", community.help, call={"expected": expected}, name="New", **more)
        assert refused.message == "PRECONDITION_FAILED"
