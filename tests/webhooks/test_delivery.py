"""Delivery, end to end: what a receiver gets, and what it may do wrong."""

from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from tests.fixture_types import Clock, Events, Run
from tests.webhook_receiver import Received, Receiver, respond_with
from tests.webhooks.conftest import Off, deliveries
from trellis.core.actor import TERMINAL, Actor, Approval
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store.webhooks import endpoints
from trellis.webhooks.outbox import fill_outbox, list_due_messages

GIGABYTE = 2**30


def test_each_change_is_told_with_a_signature_that_the_public_library_verifies(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, events: Events
) -> None:
    plugin = Actor("key", 7, "Plugin", None)
    gate.run(Call("forums.create", plugin, {"name": "News"}, request_id="r1", token="d1", idempotency_key="mine-1"))
    run("forums.create", name="Help")
    run("forums.update", 1, name="Newer")
    run("events.restore", events()[-1]["seq"])
    run("forums.update", 1, position=1)
    run("categories.create", name="Skins")
    run("forums.delete", 2)
    run("events.restore", events()[-1]["seq"])

    work_off()

    told = [one.verified(hook["secret"]) for one in receiver.received]
    assert [message["type"] for message in told] == [
        *("forum.created", "forum.created", "forum.updated", "forum.restored", "forum.moved"),
        *("category.created", "forum.deleted", "forum.restored"),
    ]
    logged = events()[1:]  # the first one is the webhook's own
    for message, event in zip(told, logged, strict=True):
        assert (message["type"], message["timestamp"]) == (event.pop("type"), event.pop("at"))
        assert message["data"] == event
    first = told[0]["data"]
    assert (first["actor"]["name"], first["requestId"], first["idempotencyKey"]) == ("Plugin", "r1", "mine-1")
    assert (told[6]["data"]["before"]["name"], told[6]["data"]["after"]) == ("Help", None)
    for restored, undone, name in ((told[3], told[2], "News"), (told[7], told[6], "Help")):
        assert (restored["data"]["after"]["name"], restored["data"]["undoes"]) == (name, undone["data"]["seq"])
    assert len(set(receiver.ids)) == len(told)
    assert {one.headers["content-type"] for one in receiver.received} == {"application/json"}


def test_a_message_names_who_approved_the_proposal_as_the_feed_does(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, events: Events
) -> None:
    approval = Approval(1, Actor("admin", 1, "Ada", None))
    gate.run(Call("forums.create", TERMINAL, {"name": "News"}, approval=approval))
    work_off()
    told = receiver.received[0].verified(hook["secret"])["data"]
    assert told["approvedBy"] == events()[-1]["approvedBy"] == {"type": "admin", "id": 1, "name": "Ada"}


@pytest.mark.either_engine
def test_a_wrong_secret_and_an_old_timestamp_are_refused_by_the_receiver(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    run("forums.create", name="News")
    work_off()
    other = run("webhooks.create", url=receiver.url, events=["*"])["secret"]
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        receiver.received[0].verified(other)
    altered = Received("/", receiver.received[0].headers, receiver.received[0].body.replace(b"News", b"Newt"))
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        altered.verified(hook["secret"])
    clock.move(minutes=-6)
    run("forums.create", name="Help")
    work_off()
    with pytest.raises(WebhookVerificationError, match="too old"):
        receiver.received[-1].verified(hook["secret"])


def test_only_what_is_wanted_is_sent_and_nothing_of_keys_or_webhooks(run: Run, receiver: Receiver, work_off: Off) -> None:
    run("webhooks.create", url=f"{receiver.url}/forums", events=["forum.*"])
    run("webhooks.create", url=f"{receiver.url}/gone", events=["group.deleted", "forum.deleted"])
    run("webhooks.create", url=f"{receiver.url}/all", events=["*"])
    run("webhooks.create", url=f"{receiver.url}/off", events=["*"], enabled=False)
    run("keys.create", name="Plugin")
    run("forums.create", name="News")
    run("groups.create", name="Friends")
    run("groups.delete", 5)
    work_off()
    got = [(one.path.rpartition("/")[2], one.body.split(b'"')[3].decode()) for one in receiver.received]
    assert sorted(got) == [
        ("all", "forum.created"),
        ("all", "group.created"),
        ("all", "group.deleted"),
        ("forums", "forum.created"),
        ("gone", "group.deleted"),
    ]


@pytest.mark.either_engine
def test_while_a_secret_is_rotated_both_verify(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    new = run("webhooks.rotate", 1, overlapHours=1)
    assert new["secret"] != hook["secret"]
    run("forums.create", name="News")
    work_off()
    assert receiver.received[0].verified(hook["secret"]) == receiver.received[0].verified(new["secret"])
    clock.move(hours=1)
    run("forums.create", name="Help")
    work_off()
    assert len(receiver.received[1].headers["webhook-signature"].split()) == 1


def test_a_test_message_is_sent_and_the_log_shows_it(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off) -> None:
    sent = run("webhooks.test", 1)
    assert (sent["state"], sent["type"]) == ("waiting", "webhook.test")
    work_off()
    message = receiver.received[0].verified(hook["secret"])
    assert (message["type"], message["data"]["webhookId"]) == ("webhook.test", 1)
    (delivery,) = deliveries(run)
    assert (delivery["id"], delivery["state"], delivery["request"]) == (sent["id"], "delivered", message)
    assert delivery["messageId"] == receiver.ids[0] == sent["messageId"]


def test_one_delivery_is_sent_again_under_its_old_id(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off) -> None:
    run("forums.create", name="One")
    run("forums.create", name="Two")
    work_off()
    first = deliveries(run)[0]
    assert run("webhooks.redeliver", 1, delivery=first["id"])["count"] == 1
    work_off()
    assert receiver.ids == [*receiver.ids[:2], receiver.ids[0]]
    assert receiver.received[2].body == receiver.received[0].body
    assert len(deliveries(run)[0]["attempts"]) == 2


def test_all_that_failed_since_a_moment_is_sent_again(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    run("forums.create", name="Good")
    work_off()
    receiver.answer = respond_with(400)
    run("forums.create", name="Early")
    work_off()
    clock.move(hours=1)
    since = clock.text
    for name in ("One", "Two", "Three"):
        run("forums.create", name=name)
    work_off()
    receiver.answer = respond_with(200)
    receiver.received.clear()
    assert run("webhooks.redeliver", 1, failedSince=since)["count"] >= 3
    work_off()
    names = [one.name for one in receiver.received]
    assert [name for name in names if name != "Early"] == ["One", "Two", "Three"]
    assert "Good" not in names
    assert run("webhooks.redeliver", 1, failedSince=since)["count"] == 0


def test_what_happens_while_it_is_off_is_sent_later_or_passed_over(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off
) -> None:
    run("webhooks.update", 1, enabled=False)
    run("forums.create", name="One")
    work_off()
    assert receiver.received == []
    run("webhooks.update", 1, enabled=True)
    work_off()
    assert len(receiver.received) == 1
    run("webhooks.update", 1, enabled=False)
    run("forums.create", name="Two")
    run("webhooks.update", 1, enabled=True, skipMissed=True)
    run("forums.create", name="Three")
    work_off()
    assert [b"Two" in one.body for one in receiver.received] == [False, False]


def test_a_deleted_webhook_is_sent_nothing_and_its_log_is_purged(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, gate: Gate
) -> None:
    receiver.answer = respond_with(500)
    run("forums.create", name="News")
    work_off()
    run("webhooks.delete", 1)
    run("forums.create", name="Help")
    work_off()
    assert len(receiver.received) == 1


def test_a_search_by_time_finds_what_was_made_before_the_clock_was_set_back(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(204)
    run("forums.create", name="Ahead")
    clock.move(days=2)
    work_off()
    clock.move(days=-2)
    for name in ("Back", "Caught up"):
        run("forums.create", name=name)
        run("webhooks.test", 1)
        clock.move(minutes=2)
        work_off()
        clock.move(days=1)
    made = run("deliveries.list", limit=1000)["results"]
    assert len(made) == 5
    for time in {one["createdAt"] for one in made} | {clock.text}:
        later = [one["id"] for one in made if one["createdAt"] >= time]
        assert [one["id"] for one in run("deliveries.list", **{"from": time})["results"]] == later
        earlier = [one["id"] for one in made if one["createdAt"] < time]
        assert [one["id"] for one in run("deliveries.list", to=time)["results"]] == earlier


def test_the_clock_set_back_stalls_nothing(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock) -> None:
    receiver.answer = respond_with(503)
    run("forums.create", name="One")
    work_off()
    clock.move(days=-30)
    run("forums.create", name="Two")
    receiver.answer = respond_with(400)
    work_off()
    receiver.answer = respond_with(200)
    clock.move(minutes=10)
    work_off()
    assert [one.name for one in receiver.received] == ["One", "One", "Two", "One", "Two"]
    assert [one["state"] for one in deliveries(run)] == ["delivered"] * 2


@pytest.fixture
def many() -> Iterator[list[Receiver]]:
    """Four receivers."""
    receivers = [Receiver() for _ in range(4)]
    for one in receivers:
        one.__enter__()
    yield receivers
    for one in receivers:
        one.__exit__(None, None, None)


def test_every_endpoint_gets_everything_in_order(run: Run, many: list[Receiver], work_off: Off) -> None:
    for one in many:
        run("webhooks.create", url=one.url, events=["forum.created"])
    for number in range(30):
        run("forums.create", name=f"Forum {number}")
    work_off()
    assert [len(one.received) for one in many] == [30] * 4
    assert all(one.ids == many[0].ids for one in many)
    assert all(one.most_at_once == 1 for one in many)


def test_of_very_large_messages_only_a_few_are_in_memory(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off
) -> None:
    """As each endpoint may have events of its own in memory, and each event a very long text before and after."""
    run("forums.create", name="News", description="x" * 100_000)
    for number in range(30):
        run("forums.update", 1, name=f"News {number}")
    gate.store.write(lambda tx: fill_outbox(tx, frozenset({"forums"}), gate.now())).result()
    with gate.store.reading() as tx:
        webhook = endpoints.find(tx, hook["id"])
        assert webhook is not None
        due = list_due_messages(tx, webhook, gate.now())
    assert len(due) == 2, "100 and 200 KB, as a slow endpoint keeps them in memory until it has responded"
    work_off()
    told = [one.verified(hook["secret"])["data"]["after"]["name"] for one in receiver.received]
    assert told == ["News", *(f"News {number}" for number in range(30))]
