"""Undoing changes of keys, and what no undo brings back."""

from typing import Any, Final

import pytest

from tests.fixture_types import Clock, Run, RunForEvent
from trellis.core.keys.fields import SETTINGS
from trellis.errors import Refused
from trellis.languages import load_language

_CHANGES: Final[dict[str, Any]] = {  # another value of each setting
    "name": "Importer",
    "owner": "Ada",
    "note": "For the calendar",
    "grants": ["forums.list"],
    "bounds": {"forums.get": {"perDay": 4}},
    "expires": "2026-12-31T00:00:00.000Z",
    "addresses": ["192.0.2.0/24"],
    "rateLimit": 5,
    "perDay": 50,
    "logRequests": False,
    "dialect": "invision",
}


def _refused(run: Run, event: int, message: str) -> Refused:
    with pytest.raises(Refused) as refusal:
        run("events.restore", event)
    assert refusal.value.message == message, refusal.value
    return refusal.value


def _state(run: Run, seq: int) -> Any:
    return next(one["undo"] for one in run("events.search", limit=100)["results"] if one["seq"] == seq)


def test_what_was_changed_goes_back_and_forth(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="Plugin", grants=["forums.list", "forums.get"], bounds={"forums.get": {"perDay": 3}})
    change = do("keys.update", 1, name="Importer", grants=["forums.list"], rateLimit=5, addresses=["192.0.2.0/24"])
    assert _state(run, change) == {"kept": True, "undoneBy": None, "open": True}
    planned = run("events.restore", change, dryRun=True)
    assert (planned["record"]["name"], run("keys.get", 1)["name"]) == ("Plugin", "Importer")
    undone = do("events.restore", change)
    key = run("keys.get", 1)
    assert (key["name"], key["grants"], key["rateLimit"], key["addresses"]) == ("Plugin", ["forums.get", "forums.list"], None, [])
    assert key["bounds"]["forums.get"]["perDay"] == 3
    assert _state(run, change) == {"kept": True, "undoneBy": undone, "open": False}
    assert "already been undone" in _refused(run, change, "NOT_RESTORABLE").detail
    do("events.restore", undone)
    assert (run("keys.get", 1)["name"], run("keys.get", 1)["grants"]) == ("Importer", ["forums.list"])


def test_every_setting_can_be_put_back(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="Plugin", grants=["forums.list", "forums.get"], bounds={"forums.get": {"perDay": 3}})
    before = run("keys.get", 1)
    for field in SETTINGS:
        change = do("keys.update", 1, **{field.name: _CHANGES[field.name]})
        assert run("keys.get", 1) != before, field.name
        run("events.restore", change)
        assert run("keys.get", 1) == before, field.name


def test_grants_changed_since_stay_and_other_settings_stand_in_the_way(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="Plugin", grants=["forums.list", "forums.get"])
    taken = do("keys.update", 1, ungrant=["forums.get"])
    renamed = do("keys.update", 1, name="Importer", grant=["groups.list"])
    do("events.restore", taken)
    assert run("keys.get", 1)["grants"] == ["forums.get", "forums.list", "groups.list"]
    do("keys.update", 1, name="Mirror")
    refused = _refused(run, renamed, "CHANGED_SINCE")
    assert refused.facts["differences"] == [{"field": "name", "then": "Importer", "now": "Mirror"}]
    bounded = do("keys.update", 1, bound={"forums.list": {"perDay": 3}})
    do("keys.update", 1, bound={"forums.list": {"perDay": 4}})
    assert _refused(run, bounded, "CHANGED_SINCE").facts["differences"][0]["field"] == "bounds.forums.list"


def test_what_was_taken_again_for_a_reason_stays_taken(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="Plugin", grants=["forums.list", "forums.delete"], addresses=["192.0.2.0/24"])
    taken = do("keys.update", 1, ungrant=["forums.delete"], addresses=["192.0.2.1"])
    given = do("keys.update", 1, grant=["forums.delete"], addresses=["192.0.2.0/24"])
    again = do("keys.update", 1, ungrant=["forums.delete"], addresses=["192.0.2.1"])
    assert [one["field"] for one in _refused(run, taken, "CHANGED_SINCE").facts["differences"]] == ["addresses"]
    assert [one["field"] for one in _refused(run, given, "CHANGED_SINCE").facts["differences"]] == ["addresses"]
    do("events.restore", again)
    do("events.restore", given)
    do("events.restore", taken)
    assert (run("keys.get", 1)["grants"], run("keys.get", 1)["addresses"]) == (["forums.delete", "forums.list"], ["192.0.2.0/24"])
    once = do("keys.update", 1, ungrant=["forums.delete"])
    do("keys.update", 1, grant=["forums.delete"])
    do("keys.update", 1, ungrant=["forums.delete"])
    run("events.restore", once)
    assert run("keys.get", 1)["grants"] == ["forums.list"]


def test_pauses_can_be_undone_alone_and_all_together(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="One", preset="agent")
    do("keys.create", name="Two", preset="agent")
    paused = do("keys.pause", 1, reason="A doubt")
    do("events.restore", paused)
    assert run("keys.get", 1)["state"] == "active"
    last = do("keys.pause_preset", preset="agent", reason="A fire")
    change_set = run("events.get", last)["changeSet"]
    assert run("changesets.restore", change_set)["undoneCount"] == 2
    assert [run("keys.get", number)["state"] for number in (1, 2)] == ["active", "active"]


def test_no_undo_lets_anybody_in_again(run: Run, do: RunForEvent) -> None:
    made = do("keys.create", name="Plugin", grants=["forums.list"])
    changed = do("keys.update", 1, ungrant=["forums.list"])
    rotated = do("keys.rotate", 1)
    revoked = do("keys.revoke", 1)
    for seq, said, in_german in (
        (made, "revoke the key", "widerrufen Sie ihn"),
        (rotated, "cannot be restored", "kann nicht zurückgeholt werden"),
        (revoked, "revoked the key, which cannot be undone", "hat den Schlüssel widerrufen"),
    ):
        detail = _refused(run, seq, "NOT_RESTORABLE").detail
        assert said in detail
        assert in_german in load_language("de").sentence(detail)
        assert _state(run, seq) is None
    _refused(run, changed, "KEY_REVOKED")
    assert run("keys.get", 1)["state"] == "revoked"


def test_changes_of_keys_can_be_undone_for_as_long_as_others(run: Run, do: RunForEvent, clock: Clock) -> None:
    do("keys.create", name="Plugin")
    changed = do("keys.update", 1, name="Importer")
    clock.move(days=31)
    assert _state(run, changed) == {"kept": False, "undoneBy": None, "open": False}
    _refused(run, changed, "NO_LONGER_KEPT")


def test_a_bound_that_was_set_again_for_a_reason_stays(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="Plugin", grants=["forums.list", "forums.delete"])
    bounded = do("keys.update", 1, bound={"forums.delete": {"perDay": 3}})
    do("keys.update", 1, bound={"forums.delete": None})
    do("keys.update", 1, bound={"forums.delete": {"perDay": 3}})
    assert [one["field"] for one in _refused(run, bounded, "CHANGED_SINCE").facts["differences"]] == ["bounds.forums.delete"]
    assert run("keys.get", 1)["bounds"]["forums.delete"]["perDay"] == 3


def test_a_grant_that_was_given_again_keeps_the_bound_with_which_it_was_given(run: Run, do: RunForEvent) -> None:
    do("keys.create", name="Plugin", grants=["forums.list", "forums.delete"])
    bounded = do("keys.update", 1, bound={"forums.delete": {"perDay": 3}})
    taken = do("keys.update", 1, ungrant=["forums.delete"])
    do("keys.update", 1, grant=["forums.delete"], bound={"forums.delete": {"perDay": 3}})
    run("events.restore", bounded)
    assert run("keys.get", 1)["bounds"]["forums.delete"]["perDay"] == 3
    do("keys.update", 1, bound={"forums.delete": None})
    run("events.restore", taken)
    assert run("keys.get", 1)["bounds"] == {}
