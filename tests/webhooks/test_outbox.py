"""The outbox: what moves into it from the event log, and what is taken back."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fixture_types import Clock, Run
from tests.webhook_receiver import Receiver, respond_with
from tests.webhooks.conftest import Off, deliveries
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.webhooks import outbox

RESOURCES = frozenset(kind.name for kind in KINDS)
URL = "https://hooks.example/"


def fill(gate: Gate) -> None:
    gate.store.write(lambda tx: outbox.fill_outbox(tx, RESOURCES, gate.now())).result(30)


def rows(run: Run) -> list[tuple[int, int, str]]:
    """Return the endpoint, the event and the state of each row, the oldest first."""
    listed = run("deliveries.list", limit=1000)["results"]
    return [(one["webhookId"], one["event"], one["state"]) for one in reversed(listed)]


def test_there_is_one_row_for_each_event_and_endpoint_that_wants_it(gate: Gate, run: Run) -> None:
    for events in (["*"], ["blog.*"], ["forum.created", "calendar.*"]):
        run("webhooks.create", url=URL, events=events)
    run("webhooks.create", url=URL, events=["*"], enabled=False)
    run("forums.create", name="News")
    run("keys.create", name="Plugin")
    run("blogs.create", name="Notebook")

    fill(gate)
    fill(gate)

    assert sorted(rows(run)) == [(1, 5, "waiting"), (1, 7, "waiting"), (2, 7, "waiting"), (3, 5, "waiting")]


def test_an_endpoint_gets_more_when_it_has_nothing_due(
    gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch, receiver: Receiver, work_off: Off
) -> None:
    monkeypatch.setattr(outbox, "FILL", 3)
    run("webhooks.create", url=receiver.url, events=["*"])
    for number in range(8):
        run("forums.create", name=f"Forum {number}")
    for _ in range(3):
        fill(gate)
    assert 0 < len(rows(run)) <= 3
    work_off()
    assert [one.name for one in receiver.received] == [f"Forum {number}" for number in range(8)]


def test_endpoints_that_are_behind_one_another_each_get_what_they_lack(
    gate: Gate, run: Run, receiver: Receiver, work_off: Off
) -> None:
    for _ in range(2):
        run("webhooks.create", url=receiver.url, events=["*"])
    run("webhooks.update", 2, enabled=False)
    run("forums.create", name="One")
    work_off()
    run("webhooks.update", 2, enabled=True)
    run("forums.create", name="Two")
    fill(gate)
    assert [(hook, state) for hook, _, state in rows(run)] == [
        (1, "delivered"),
        (1, "waiting"),
        (2, "waiting"),
        (2, "waiting"),
    ]


def test_processes_that_fill_it_at_the_same_time_write_each_row_once(settings: Settings, run: Run) -> None:
    run("webhooks.create", url=URL, events=["*"])
    for number in range(20):
        run("forums.create", name=f"Forum {number}")
    gates = [compose(settings) for _ in range(4)]
    with ThreadPoolExecutor() as threads:
        list(threads.map(fill, gates))
    for each in gates:
        each.store.close()
    assert len(rows(run)) == len(set(rows(run))) == 20


def test_what_waits_is_looked_at_anew_when_other_events_are_wanted(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(503)
    run("forums.create", name="One")
    run("forums.create", name="Two")
    run("blogs.create", name="Notebook")
    run("forums.create", name="Three")
    work_off()
    run("webhooks.update", 1, events=["blog.*"])
    receiver.answer = respond_with(200)
    clock.move(seconds=10)
    work_off()
    assert [one.name for one in receiver.received] == ["One", "Notebook"]
    assert [state for _, _, state in rows(run)] == ["failed", "delivered"]
    given_up = deliveries(run)[0]
    assert [one["error"] for one in given_up["attempts"]][-1] == "The webhook is no longer subscribed to messages of this type."
    run("webhooks.redeliver", 1, delivery=given_up["id"])
    work_off()
    assert [one.name for one in receiver.received] == ["One", "Notebook", "One"], "an administrator has asked for it"


def test_what_fails_while_its_type_is_unsubscribed_is_not_retried(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    run("forums.create", name="One")
    work_off()
    run("forums.update", 1, name="Won")

    def unsubscribing(handler: Any, received: Any) -> None:
        if receiver.received[-1].name == "Won" and len(receiver.received) == 3:
            run("webhooks.update", 1, events=["blog.*"])
        respond_with(503)(handler, received)

    receiver.answer = unsubscribing
    work_off()
    clock.move(seconds=10)
    work_off()
    clock.move(hours=1)
    work_off()
    assert [one.name for one in receiver.received] == ["One", "Won", "Won"]
    assert [state for _, _, state in rows(run)] == ["delivered", "failed"]


def test_a_row_that_is_withdrawn_while_it_is_sent_leaves_no_log(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off
) -> None:
    run("forums.create", name="One")
    quick = receiver.answer

    def skipping(handler: Any, received: Any) -> None:
        run("webhooks.update", 1, skipMissed=True)
        receiver.answer = quick
        quick(handler, received)

    receiver.answer = skipping
    work_off()
    run("forums.create", name="Two")
    work_off()
    assert [one.name for one in receiver.received] == ["One", "Two"]
    assert [state for _, _, state in rows(run)] == ["delivered"]
