"""Keys that are made with a preset: what they get, what else can be sent, and what they can then do."""

from typing import Any

import pytest

from tests.community import CATALOGUE, grantable
from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate, Result
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused


def _make(run: Run, **settings: Any) -> dict[str, Any]:
    made: dict[str, Any] = run("keys.create", name="Agent", preset="agent", **settings)
    return made


@pytest.fixture
def agent(gate: Gate, run: Run) -> Actor:
    """The holder of a key that was made with the preset."""
    text = _make(run)["key"]
    return gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor


def _act(gate: Gate, actor: Actor, operation: str, target: int | None = None, **raw: Any) -> Result:
    return gate.run(Call(operation, actor, raw, target))


def test_an_agent_reads_proposes_and_undoes_its_own(run: Run) -> None:
    made = _make(run)
    assert made["preset"] == "agent"
    assert made["expiresAt"] == "2026-02-07T09:30:00.000Z"
    assert made["perDay"] == 1_000
    assert made["grants"] == [name for name in grantable("*") if not name.startswith(("access.", "proposals.", "webhooks."))]
    on_nodes = [operation for operation in CATALOGUE.grantable if operation.can_be_limited and not operation.access.is_about_events]
    writes = sorted(operation.name for operation in on_nodes if operation.writes and not operation.is_plan)
    assert {"groups.delete", "forums.create", "forums.update", "forums.copy", "structure.apply"} <= {*writes}
    by_bound: dict[str, list[str]] = {}
    for name in made["grants"]:
        by_bound.setdefault(str(made["bounds"].get(name)), []).append(name)
    assert by_bound == {
        "None": sorted({operation.name for operation in on_nodes} - {*writes}),
        "{'level': 'allow', 'ownOnly': True}": grantable("*.restore", "events.list"),
        "{'level': 'propose'}": writes,
    }


def test_what_is_sent_comes_before_the_preset(run: Run) -> None:
    made = _make(run, expires=None, perDay=5, logRequests=False)
    assert (made["expiresAt"], made["perDay"], made["logRequests"]) == (None, 5, False)
    assert made["bounds"]["forums.create"] == {"level": "propose"}


def test_grants_that_are_sent_have_the_bounds_of_the_preset_and_those_that_are_sent(run: Run) -> None:
    bounds = {"forums.*": {"under": ["forums:12"]}, "forums.copy": None, "forums.delete": {"level": "allow"}}
    made = _make(run, grants=["forums.*", "webhooks.list"], bounds=bounds)
    assert made["grants"] == [*grantable("forums.*"), "webhooks.list"]
    levels = {name: "propose" if CATALOGUE[name].writes else "allow" for name in grantable("forums.*") if name != "forums.copy"}
    levels |= {"forums.delete": "allow", "forums.restore": "allow"}
    assert made["bounds"] == {name: {"level": level, "under": ["forums:12"]} for name, level in levels.items()} | {
        "forums.restore": {"level": "allow", "under": ["forums:12"], "ownOnly": True}
    }


def test_a_preset_stays_with_its_key_and_everything_else_can_be_changed(run: Run) -> None:
    number = _make(run)["id"]
    changed = run("keys.update", number, expires=None, perDay=None, bound={"forums.*": None}, ungrant=["groups.*"])
    assert changed["preset"] == "agent"
    assert (changed["expiresAt"], changed["perDay"]) == (None, None)
    assert not [name for name in changed["bounds"] if name.startswith("forums.")]
    assert not [name for name in changed["grants"] if name.startswith("groups.")]
    with pytest.raises(Refused, match="preset"):
        run("keys.update", number, preset=None)


def test_there_is_no_other_preset(run: Run) -> None:
    with pytest.raises(Refused, match="must be one of agent, not 'angel'"):
        run("keys.create", name="Agent", preset="angel")
    assert run("keys.create", name="Plugin")["preset"] is None


def test_keys_of_a_preset_are_listed(run: Run) -> None:
    _make(run)
    run("keys.create", name="Plugin")
    assert [key["name"] for key in run("keys.list", preset="agent")["results"]] == ["Agent"]


def test_an_agent_tries_what_it_may_not_do_alone(gate: Gate, agent: Actor, run: Run, events: Events) -> None:
    forum = run("forums.create", name="News")["id"]
    before = events()
    assert _act(gate, agent, "forums.get", forum).value["name"] == "News"
    for operation, target, raw in (
        ("forums.create", None, {"name": "More"}),
        ("forums.update", forum, {"name": "Old news"}),
        ("forums.delete", forum, {}),
        ("forums.copy", forum, {}),
    ):
        assert _act(gate, agent, operation, target, **raw, dryRun=True).dry
        assert _act(gate, agent, operation, target, **raw).value["operation"] == operation
    assert {event["type"] for event in events()[len(before) :]} == {"proposal.created"}


def test_an_agent_undoes_what_it_did_and_nothing_else(gate: Gate, agent: Actor, run: Run, events: Events) -> None:
    forum = run("forums.create", name="News")["id"]
    run("forums.update", forum, name="New")
    others = events()[-1]["seq"]
    run("keys.update", agent.id, bound={"forums.update": None})
    alone = Actor("key", agent.id, agent.name, agent.grants, {n: b for n, b in agent.bounds.items() if n != "forums.update"})
    mine = _act(gate, alone, "forums.update", forum, name="Newest").event
    for operation in ("events.restore", "forums.restore"):
        with pytest.raises(Refused) as refused:
            _act(gate, alone, operation, others)
        assert (refused.value.message, refused.value.status) == ("INVALID_ID", 404)
        assert refused.value.detail.startswith(f"There is no event {others} that this key may undo.")
    shown = _act(gate, alone, "events.list").value["results"]
    assert [event["seq"] for event in shown] == [mine]
    assert _act(gate, alone, "events.restore", mine).value["record"]["name"] == "New"


def test_the_day_of_a_key_ends_over_all_its_grants(gate: Gate, run: Run, clock: Clock, events: Events) -> None:
    text = run("keys.create", name="Plugin", grants=["forums.*", "calendars.*"], perDay=4)["key"]
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    forum = _act(gate, caller, "forums.create", name="News").value["id"]
    _act(gate, caller, "calendars.list")
    _act(gate, caller, "forums.create", name="Tried", dryRun=True)
    _act(gate, caller, "core.hello")
    batch = [{"operation": "forums.get", "id": forum}, {"operation": "forums.update", "id": forum, "body": {"name": "Newer"}}]
    with pytest.raises(Refused) as too_many:
        _act(gate, caller, "core.batch", operations=[*batch, batch[0]])
    assert too_many.value.facts["problem"].message == "GRANT_USED_UP"
    _act(gate, caller, "core.batch", operations=batch)
    before = events()
    for operation, target, raw in (
        ("forums.get", forum, {}),
        ("forums.create", None, {"name": "More"}),
        ("calendars.list", None, {}),
    ):
        with pytest.raises(Refused) as refused:
            _act(gate, caller, operation, target, **raw)
        assert (refused.value.message, refused.value.status) == ("GRANT_USED_UP", 429)
        assert "may run operations 4 times a day" in refused.value.detail
    assert events() == before
    clock.move(hours=14, minutes=30)
    _act(gate, caller, "forums.get", forum)
