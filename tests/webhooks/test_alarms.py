"""Alarms as messages to webhooks: only to who has named them, with little in them, and by owners' will alone."""

import json
from typing import Any, Final

import pytest

from tests.fixture_types import Clock, MakeKey, Run
from tests.webhook_receiver import Receiver, respond_with
from tests.webhooks.conftest import Off
from trellis.core.actor import Actor
from trellis.core.alarms import ALARM_TYPES
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

PASSWORD: Final = "correct horse battery"


def told(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in receiver.received]


def act(gate: Gate, actor: Actor, operation: str, target: int | None = None, **raw: Any) -> Any:
    return gate.run(Call(operation, actor, raw, target)).value


def test_those_who_name_alarms_get_them_once_signed_and_without_what_is_nobodys_business(
    run: Run, receiver: Receiver, work_off: Off
) -> None:
    run("webhooks.create", url=f"{receiver.url}/all", events=["*"])
    secret = run("webhooks.create", url=f"{receiver.url}/alarms", events=["alarm.*", "forum.created"])["secret"]
    run("webhooks.create", url=f"{receiver.url}/some", events=["alarm.new_browser"])
    ada = run("admins.create", name="Ada Berg", login="ada@lantern.example", password=PASSWORD)["id"]
    run("admins.sign_in", ada, address="192.0.2.7", agent="Firefox/1")
    run("forums.create", name="News")
    work_off()
    work_off()

    by_path: dict[str, list[str]] = {}
    for one, message in zip(receiver.received, told(receiver), strict=True):
        by_path.setdefault(one.path.rpartition("/")[2], []).append(message["type"])
    assert by_path["all"] == ["forum.created"]
    assert by_path["alarms"] == [
        "alarm.new_webhook",
        "alarm.new_webhook",
        "alarm.new_administrator",
        "alarm.new_browser",
        "forum.created",
    ]
    assert by_path["some"] == ["alarm.new_browser"]
    signed = next(one for one in receiver.received if one.path.endswith("/alarms"))
    signed.verified(secret)
    message = next(one for one in told(receiver) if one["type"] == "alarm.new_browser")
    assert set(message) == {"type", "timestamp", "data"}
    assert set(message["data"]) == {"event", "sentence", "actor", "resource", "resourceId"}
    for hidden in ("192.0.2.7", "Firefox", "ada@lantern.example", f"{receiver.url}/all"):
        assert hidden not in json.dumps([one for one in told(receiver) if one["type"].startswith("alarm.")])


def test_an_alarm_waits_for_an_endpoint_that_is_down_and_keeps_its_id(
    run: Run, receiver: Receiver, work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(503)
    run("webhooks.create", url=receiver.url, events=["alarm.new_webhook"])
    work_off()
    receiver.answer = respond_with(200)
    clock.move(minutes=10)
    work_off()
    assert len(receiver.received) == 2
    assert len({one.id for one in receiver.received}) == 1
    assert told(receiver)[1]["data"]["sentence"].endswith("127.0.0.1.")


def test_only_owners_have_alarms_sent_or_sent_elsewhere(
    gate: Gate, run: Run, key: MakeKey, receiver: Receiver, work_off: Off
) -> None:
    owner = Actor.administrator(run("admins.create", name="Mira", login="mira", password=PASSWORD)["id"], "Mira", None)
    number = run("admins.create", name="Ada", login="ada", password=PASSWORD, role="key-manager")["id"]
    manager = Actor.administrator(number, "Ada", gate.environment.permits.find("key-manager"))
    program = Actor("key", 1, "Plugin", frozenset({"webhooks.create", "webhooks.update"}))
    made = act(gate, owner, "webhooks.create", url=receiver.url, events=["alarm.new_key"])["id"]
    plain = act(gate, manager, "webhooks.create", url=receiver.url, events=["*"])["id"]
    for actor in (manager, program):
        for name, target, raw in (
            ("webhooks.create", None, {"url": receiver.url, "events": ["alarm.*"]}),
            ("webhooks.update", plain, {"events": ["*", "alarm.new_key"]}),
            ("webhooks.update", made, {"url": f"{receiver.url}/mine"}),
            ("webhooks.update", made, {"events": ["alarm.new_key", "alarm.new_browser"]}),
        ):
            with pytest.raises(Refused) as refused:
                act(gate, actor, name, target, **raw)
            assert refused.value.message == "ALARMS_ARE_FOR_OWNERS"
    act(gate, manager, "webhooks.update", made, description="What a manager may change.")
    act(gate, owner, "keys.create", name="New")
    work_off()
    delivery = next(one for one in run("deliveries.list")["results"] if one["type"] == "alarm.new_key")
    act(gate, owner, "webhooks.update", made, events=["forum.*"])
    act(gate, manager, "webhooks.update", made, url=f"{receiver.url}/mine")
    act(gate, manager, "webhooks.redeliver", made, delivery=delivery["id"])
    work_off()
    assert not [one for one in receiver.received if one.path.endswith("/mine")], "what it got before goes nowhere else"


def test_others_can_have_fewer_alarms_sent(gate: Gate, run: Run) -> None:
    number = run("admins.create", name="Ada", login="ada", password=PASSWORD, role="key-manager")["id"]
    manager = Actor.administrator(number, "Ada", gate.environment.permits.find("key-manager"))
    made = run("webhooks.create", url="https://hooks.example/", events=["alarm.*", "forum.*"])["id"]
    act(gate, manager, "webhooks.update", made, events=["alarm.new_key", "forum.*"])
    assert act(gate, manager, "webhooks.update", made, events=["forum.*"])["events"] == ["forum.*"]
    with pytest.raises(Refused, match="Only an owner"):
        act(gate, manager, "webhooks.update", made, events=["alarm.new_key"])


def test_only_owners_have_alarms_sent_again_where_that_was_switched_off(gate: Gate, run: Run, receiver: Receiver) -> None:
    """Where they go was perhaps chosen by the owner who was disabled."""
    owner = Actor.administrator(run("admins.create", name="Mira", login="mira", password=PASSWORD)["id"], "Mira", None)
    run("admins.create", name="Olga", login="olga", password=PASSWORD)
    number = run("admins.create", name="Ada", login="ada", password=PASSWORD, role="key-manager")["id"]
    manager = Actor.administrator(number, "Ada", gate.environment.permits.find("key-manager"))
    program = Actor("key", 1, "Plugin", frozenset({"webhooks.update"}))
    made = act(gate, owner, "webhooks.create", url=receiver.url, events=["*", "alarm.*"])["id"]
    run("admins.disable", owner.id)
    for actor in (manager, program):
        with pytest.raises(Refused) as refused:
            act(gate, actor, "webhooks.update", made, enabled=True)
        assert refused.value.message == "ALARMS_ARE_FOR_OWNERS"
    assert run("webhooks.get", made)["state"] == "off"
    assert act(gate, program, "webhooks.update", made, enabled=True, events=["*"])["state"] == "on"
    act(gate, program, "webhooks.update", made, enabled=False)
    assert run("webhooks.update", made, enabled=True, events=["alarm.*"])["state"] == "on"
    assert act(gate, manager, "webhooks.update", made, enabled=False)["state"] == "off"


def test_who_may_not_read_of_it_sees_no_message(gate: Gate, run: Run, receiver: Receiver, work_off: Off) -> None:
    run("webhooks.create", url=receiver.url, events=["alarm.*"])
    ada = run("admins.create", name="Ada", login="ada", password=PASSWORD, role="key-manager")["id"]
    run("keys.create", name="Plugin")
    work_off()
    manager = Actor.administrator(ada, "Ada", gate.environment.permits.find("key-manager"))
    shown = {
        one["type"]: act(gate, manager, "deliveries.get", one["id"])["request"] is not None
        for one in run("deliveries.list")["results"]
    }
    assert shown == {"alarm.new_webhook": True, "alarm.new_administrator": False, "alarm.new_key": True}


def test_each_type_is_one_that_a_webhook_can_name(run: Run) -> None:
    assert run("webhooks.create", url="https://hooks.example/", events=list(ALARM_TYPES))["events"] == list(ALARM_TYPES)
