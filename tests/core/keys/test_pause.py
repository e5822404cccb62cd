"""Pausing keys: one, or all that were made with a preset."""

import pytest

from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.keys.keyring import Keyring, authenticate
from trellis.core.operation import Call
from trellis.errors import Refused


def _is_admitted(gate: Gate, text: str) -> bool:
    bearer = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now()))
    try:
        Keyring().admit(bearer, text, "192.0.2.7", gate.now(), None)
    except Refused as refused:
        return {"INVALID_API_KEY": False}[refused.message]
    return True


def test_a_paused_key_is_refused_until_it_is_resumed(gate: Gate, run: Run, clock: Clock, events: Events) -> None:
    made = run("keys.create", name="Plugin", grants=["forums.list"])
    clock.move(minutes=1)
    paused = run("keys.pause", made["id"], reason="Odd requests")
    assert (paused["state"], paused["pausedAt"], paused["pausedBecause"]) == ("paused", clock.text, "Odd requests")
    assert not _is_admitted(gate, made["key"])
    assert run("access.check", holder=str(made["id"]), operation="forums.list")["detail"] == (
        "No: the key was paused on 31 January 2026, 09:31 UTC: Odd requests. Resume it to use it again."
    )
    resumed = run("keys.resume", made["id"])
    assert (resumed["state"], resumed["pausedAt"], resumed["pausedBecause"]) == ("active", None, None)
    assert resumed["grants"] == ["forums.list"]
    assert _is_admitted(gate, made["key"])
    assert [event["operation"] for event in events()] == ["keys.create", "keys.pause", "keys.resume"]


def test_pausing_a_paused_key_and_resuming_another_changes_nothing(run: Run, clock: Clock, events: Events) -> None:
    number = run("keys.create", name="Plugin")["id"]
    run("keys.resume", number)
    first = run("keys.pause", number, reason="Odd")
    clock.move(minutes=1)
    assert run("keys.pause", number, reason="Even")["pausedAt"] == first["pausedAt"]
    assert [event["operation"] for event in events()] == ["keys.create", "keys.pause"]


def test_a_revoked_key_is_neither_paused_nor_resumed(run: Run) -> None:
    number = run("keys.create", name="Plugin")["id"]
    run("keys.revoke", number)
    for operation in ("keys.pause", "keys.resume"):
        with pytest.raises(Refused) as refused:
            run(operation, number)
        assert refused.value.message == "KEY_REVOKED"


def test_all_keys_of_a_preset_are_paused_at_once(gate: Gate, run: Run, events: Events) -> None:
    agents = [run("keys.create", name=f"Agent {number}", preset="agent") for number in range(4)]
    plugin = run("keys.create", name="Plugin", grants=["forums.list"])
    run("keys.revoke", agents[0]["id"])
    run("keys.pause", agents[1]["id"], reason="Before")
    before = events()
    result = gate.run(Call("keys.pause_preset", TERMINAL, {"preset": "agent", "reason": "Too much at once"}))
    running = [agents[2]["id"], agents[3]["id"]]
    assert result.value == {"count": 2, "keys": running}
    new = events()[len(before) :]
    assert [(event["operation"], event["resourceId"]) for event in new] == [("keys.pause", number) for number in running]
    assert {event["changeSet"] for event in new} == {result.change_set}
    assert [_is_admitted(gate, key["key"]) for key in agents] == [False] * 4
    assert _is_admitted(gate, plugin["key"])
    assert run("keys.get", agents[1]["id"])["pausedBecause"] == "Before"
    assert [key["id"] for key in run("keys.list", state="paused")["results"]] == [agents[1]["id"], *running]


def test_a_dry_run_tells_which_keys_would_be_paused(run: Run, gate: Gate, events: Events) -> None:
    agent = run("keys.create", name="Agent", preset="agent")
    before = events()
    assert run("keys.pause_preset", preset="agent", dryRun=True) == {"count": 1, "keys": [agent["id"]]}
    assert events() == before
    assert _is_admitted(gate, agent["key"])


def test_where_no_key_is_left_to_pause_nothing_happens(run: Run, events: Events) -> None:
    assert run("keys.pause_preset", preset="agent") == {"count": 0, "keys": []}
    assert events() == []


def test_a_preset_must_be_named(run: Run) -> None:
    with pytest.raises(Refused, match="preset"):
        run("keys.pause_preset")
