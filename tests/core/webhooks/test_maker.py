"""Who made a webhook: remembered, and switched off with the key that did."""

from typing import Any

import pytest

from tests.community import GRANTABLE, grantable
from tests.fixture_types import Events, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.events import EVENTS
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

_PLUGIN = Actor("key", 1, "Plugin", frozenset({"webhooks.create", "webhooks.update"}))
_MIRA = Actor("admin", 1, "Mira Holm")


def _create(gate: Gate, actor: Actor, name: str = "hook") -> int:
    raw = {"url": f"https://hooks.example/{name}", "events": ["forum.*"]}
    return int(gate.run(Call("webhooks.create", actor, raw)).value["id"])


def _update(gate: Gate, actor: Actor, webhook: int, **raw: Any) -> dict[str, Any]:
    return dict(gate.run(Call("webhooks.update", actor, raw, webhook)).value)


def test_the_maker_is_whoever_decided_last_where_it_sends_and_what(gate: Gate, key: MakeKey) -> None:
    key(name="Plugin")
    webhook = _create(gate, _PLUGIN)
    plugin, mira = _PLUGIN.serialize(), _MIRA.serialize()
    assert _update(gate, _MIRA, webhook, description="Search")["maker"] == plugin
    assert _update(gate, _MIRA, webhook, url="https://hooks.example/other")["maker"] == mira
    assert _update(gate, _PLUGIN, webhook, events=["*"])["maker"] == plugin
    assert _update(gate, _MIRA, webhook, enabled=False)["maker"] == plugin
    assert _update(gate, _MIRA, webhook, enabled=True)["maker"] == mira


def test_revoking_a_key_switches_off_what_it_made_and_nothing_else(gate: Gate, run: Run, key: MakeKey, events: Events) -> None:
    key(name="Plugin")
    key(name="Other")
    made = [_create(gate, _PLUGIN, "one"), _create(gate, _PLUGIN, "two")]
    others = [_create(gate, _MIRA), _create(gate, Actor("key", 2, "Other", _PLUGIN.grants))]
    off = _create(gate, _PLUGIN, "off")
    _update(gate, _PLUGIN, off, enabled=False)
    run("keys.revoke", 1, dryRun=True)
    assert run("webhooks.get", made[0])["enabled"] is True
    run("keys.revoke", 1)
    for number in made:
        webhook = run("webhooks.get", number)
        assert (webhook["state"], webhook["disabledBecause"]) == ("off", "The key that made it, 'Plugin', was revoked.")
    assert [run("webhooks.get", number)["state"] for number in others] == ["on", "on"]
    assert run("webhooks.get", off)["disabledBecause"] == ""
    assert events()[-1]["touched"] == [{"resource": "webhooks", "id": number, "how": "switched off"} for number in made]
    (touched,) = (field.type for field in EVENTS if field.name == "touched")
    assert "switched off" in str(touched), "the reference says so"


def test_they_go_on_if_that_is_said(gate: Gate, run: Run, key: MakeKey, events: Events) -> None:
    key(name="Plugin")
    webhook = _create(gate, _PLUGIN)
    run("keys.revoke", 1, keepWebhooks=True)
    assert run("webhooks.get", webhook)["state"] == "on"
    assert events()[-1]["touched"] == []


@pytest.fixture
def mira(run: Run) -> int:
    """Two administrators: Mira Holm, whose id this is, and Ada."""
    password = "kept in a tin box"  # of nobody
    mira, _ = (run("admins.create", name=name, login=name[:3], password=password)["id"] for name in ("Mira Holm", "Ada"))
    return int(mira)


def test_disabling_an_administrator_switches_off_what_they_made_and_nothing_else(
    gate: Gate, run: Run, mira: int, key: MakeKey, events: Events
) -> None:
    key(name="Plugin")
    made = [_create(gate, _MIRA, "one"), _create(gate, _MIRA, "two")]
    others = [_create(gate, _PLUGIN), _create(gate, Actor("admin", 2, "Ada"), "three")]
    run("admins.disable", mira, dryRun=True)
    assert run("webhooks.get", made[0])["enabled"] is True
    run("admins.disable", mira)
    for number in made:
        webhook = run("webhooks.get", number)
        assert webhook["state"] == "off"
        assert webhook["disabledBecause"] == "The administrator who made it, Mira Holm, was disabled."
    assert [run("webhooks.get", number)["state"] for number in others] == ["on", "on"]
    assert events()[-1]["touched"] == [{"resource": "webhooks", "id": number, "how": "switched off"} for number in made]
    run("admins.enable", mira)
    assert run("webhooks.get", made[0])["state"] == "off"


def test_those_of_an_administrator_go_on_if_that_is_said(gate: Gate, run: Run, mira: int, events: Events) -> None:
    webhook = _create(gate, _MIRA)
    run("admins.disable", mira, keepWebhooks=True)
    assert run("webhooks.get", webhook)["state"] == "on"
    assert events()[-1]["touched"] == []


@pytest.mark.parametrize("pattern", ["*.create", "*.*ate", "*s.create"])
def test_a_pattern_of_several_resources_does_not_grant_making_webhooks(run: Run, pattern: str) -> None:
    given = run("keys.create", name="Plugin", grants=["forums.list", pattern])
    assert not {"webhooks.create", "webhooks.update"} & set(given["grants"])
    assert "forums.create" in given["grants"]


@pytest.mark.parametrize("pattern", ["?ebhooks.create", "[vw]ebhooks.create"])
def test_a_pattern_that_matches_nothing_else_is_refused(run: Run, pattern: str, events: Events) -> None:
    with pytest.raises(Refused, match="UNKNOWN_OPERATION"):
        run("keys.create", name="Plugin", grants=["forums.list", pattern])
    assert events() == []


def test_its_name_its_resource_and_everything_do(run: Run) -> None:
    assert run("keys.create", name="A", grants=["webhooks.create"])["grants"] == ["webhooks.create"]
    assert run("keys.create", name="B", grants=["webhooks.*"])["grants"] == grantable("webhooks.*")
    assert len(run("keys.create", name="C", grants=["*"])["grants"]) == GRANTABLE
    taken = run("keys.update", 3, ungrant=["*.create"])["grants"]
    assert "webhooks.create" not in taken
