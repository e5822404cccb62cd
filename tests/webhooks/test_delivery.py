"""Delivery, end to end: what a receiver gets, and what it may do wrong."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from tests.cast import Clock, Events, Run
from tests.receiver import Raw, Received, Receiver, answering
from tests.webhooks.conftest import Off
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call

GIGABYTE = 2**30


@pytest.fixture
def hook(run: Run, receiver: Receiver) -> dict[str, Any]:
    """A webhook for everything, to the receiver."""
    return dict(run("webhooks.create", url=receiver.url, events=["*"]))


def deliveries(run: Run, **filters: Any) -> list[dict[str, Any]]:
    """Give the deliveries of webhook 1, the oldest first."""
    return list(reversed(run("webhooks.deliveries", 1, perPage=1000, **filters)["results"]))


def test_each_change_is_told_with_a_signature_that_the_public_library_verifies(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, events: Events
) -> None:
    plugin = Actor("key", 7, "Plugin", None)
    gate.run(Call("forums.create", plugin, {"name": "News"}, request_id="r1", token="d1", idempotency_key="mine-1"))
    run("forums.create", name="Help")
    run("forums.update", 1, name="Newer")
    run("forums.update", 1, position=1)
    run("categories.create", name="Skins")
    run("forums.delete", 2)

    work_off()

    told = [one.verified(hook["secret"]) for one in receiver.received]
    assert [message["type"] for message in told] == [
        *("forum.created", "forum.created", "forum.updated", "forum.moved", "category.created", "forum.deleted"),
    ]
    logged = events()[1:]  # the first one is the webhook's own
    for message, event in zip(told, logged, strict=True):
        assert message["timestamp"] == event.pop("at")
        assert message["data"] == event
    first = told[0]["data"]
    assert (first["actor"]["name"], first["requestId"], first["idempotencyKey"]) == ("Plugin", "r1", "mine-1")
    assert (told[5]["data"]["before"]["name"], told[5]["data"]["after"]) == ("Help", None)
    assert len(set(receiver.ids)) == len(told)
    assert {one.headers["content-type"] for one in receiver.received} == {"application/json"}


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


def test_the_schedule_of_retries(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock) -> None:
    receiver.answer = answering(500, b"out of tea")
    run("forums.create", name="News")
    work_off()
    waits = []
    hours = 3600
    for wait in (5, 300, 1800, *(n * hours for n in (2, 5, 10, 14, 20, 24))):
        before = len(receiver.received)
        clock.move(seconds=wait - 0.1)
        work_off()
        assert len(receiver.received) == before
        clock.move(seconds=wait * 0.1 + 0.2)
        work_off()
        waits.append(len(receiver.received) - before)
    assert waits == [1] * 9
    clock.move(days=30)
    work_off()
    (delivery,) = deliveries(run)
    assert len(set(receiver.ids)) == 1
    assert (delivery["state"], delivery["nextAttemptAt"], len(delivery["attempts"])) == ("failed", None, 10)
    assert {(one["status"], one["answer"]) for one in delivery["attempts"]} == {(500, "out of tea")}
    assert run("webhooks.get", 1)["state"] == "failing"


def test_after_an_outage_everything_comes_in_order(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = answering(503)
    for number in range(40):
        run("forums.create", name=f"Forum {number}")
        work_off()
        clock.move(seconds=3)
    assert 5 <= len(receiver.received) < 15  # it was left alone for longer and longer
    receiver.answer = answering(200)
    receiver.received.clear()
    clock.move(seconds=61)
    work_off()
    assert [one.name for one in receiver.received] == [f"Forum {number}" for number in range(40)]
    assert run("webhooks.get", 1)["state"] == "on"


def test_a_message_that_is_refused_does_not_hold_up_those_behind_it(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    def picky(handler: Any, received: Received) -> None:
        answering(500 if b"Poison" in received.body else 200)(handler, received)

    receiver.answer = picky
    for name in ("One", "Poison", "Two", "Three"):
        run("forums.create", name=name)
    work_off()
    assert [one["state"] for one in deliveries(run)] == ["delivered", "waiting", "delivered", "delivered"]
    receiver.answer = answering(200)
    clock.move(seconds=6)
    work_off()
    assert [one["state"] for one in deliveries(run)] == ["delivered"] * 4


@pytest.mark.parametrize(("asked", "wait"), [("120", 120), ("999999999", 86_400), ("soon", 6)])
def test_retry_after_is_obeyed_within_bounds(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock, asked: str, wait: int
) -> None:
    receiver.answer = answering(429, Retry_After=asked)
    run("forums.create", name="One")
    work_off()
    run("forums.create", name="Two")
    clock.move(seconds=wait - 2)
    work_off()
    assert len(receiver.received) == 1
    clock.move(seconds=2)
    receiver.answer = answering(204)
    work_off()
    assert [b"One" in one.body for one in receiver.received] == [True, True, False]


def test_an_endpoint_that_is_gone_is_switched_off(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, events: Events
) -> None:
    receiver.answer = answering(410)
    run("forums.create", name="One")
    run("forums.create", name="Two")
    work_off()
    assert len(receiver.received) == 1
    now = run("webhooks.get", 1)
    assert (now["enabled"], now["state"], now["disabledBecause"]) == (False, "off", "The endpoint answered 410: it is gone.")
    assert (events()[-1]["operation"], events()[-1]["actor"]["type"]) == ("webhooks.disable", "service")
    receiver.answer = answering(200)
    run("webhooks.update", 1, enabled=True)
    work_off()
    assert run("webhooks.get", 1)["disabledBecause"] == ""
    assert [b"Two" in one.body for one in receiver.received] == [False, True]


def test_a_week_of_nothing_but_failure_switches_an_endpoint_off(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = answering(500)
    for _ in range(8):
        run("forums.create", name="News")
        work_off()
        assert run("webhooks.get", 1)["state"] == "failing"
        clock.move(hours=20, minutes=58)
    work_off()
    assert run("webhooks.get", 1)["state"] == "failing"
    clock.move(hours=1)
    work_off()
    assert run("webhooks.get", 1)["disabledBecause"] == "Every attempt of a week has failed."


def test_a_redirect_is_a_failure_and_not_followed(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off) -> None:
    receiver.answer = answering(307, Location="http://169.254.169.254/latest/meta-data")
    run("forums.create", name="News")
    work_off()
    (attempt,) = deliveries(run)[0]["attempts"]
    assert (attempt["status"], attempt["error"]) == (307, None)
    assert deliveries(run)[0]["state"] == "waiting"


def silent(connection: socket.socket) -> None:
    time.sleep(3)
    del connection


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b"x")
        time.sleep(0.05)


def broken(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf")


def mute(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def garbled(connection: socket.socket) -> None:
    connection.sendall(b"220 smtp.example ESMTP\r\n")


@pytest.mark.parametrize(
    ("act", "status", "error"),
    [
        (silent, None, "There was no whole answer within 0.3 seconds."),
        (dripping, 200, "There was no whole answer within 0.3 seconds."),
        (broken, 200, "The exchange broke off"),
        (mute, None, "The exchange broke off"),
        (garbled, None, "The exchange broke off"),
    ],
)
def test_what_is_no_whole_answer_is_a_failure(run: Run, work_off: Off, act: Any, status: int | None, error: str) -> None:
    with Raw(act) as server:
        run("webhooks.create", url=server.url, events=["*"])
        run("forums.create", name="News")
        started = time.monotonic()
        work_off(patience=0.3)
        assert time.monotonic() - started < 3
        (delivery,) = deliveries(run)
    assert (delivery["state"], delivery["attempts"][0]["status"]) == ("waiting", status)
    assert delivery["attempts"][0]["error"].startswith(error)
    assert server.count == 1


def test_of_a_gigabyte_of_answer_64_kib_are_read(run: Run, work_off: Off) -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % GIGABYTE)
        while sent < GIGABYTE:
            sent += connection.send(b"x" * 65_536)

    with Raw(flood) as server:
        run("webhooks.create", url=server.url, events=["*"])
        run("forums.create", name="News")
        work_off()
    assert sent < GIGABYTE / 50
    (delivery,) = deliveries(run)
    assert delivery["state"] == "delivered"
    assert len(delivery["attempts"][0]["answer"]) == 4096


def test_an_endpoint_that_does_not_listen_is_a_failure_in_words(run: Run, work_off: Off) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    run("webhooks.create", url=f"http://127.0.0.1:{port}/", events=["*"])
    run("forums.create", name="News")
    work_off()
    assert deliveries(run)[0]["attempts"][0]["error"].startswith("There was no connection")


def test_a_slow_endpoint_does_not_hold_up_the_others(run: Run, receiver: Receiver, work_off: Off) -> None:
    with Raw(silent) as slow:
        for _ in range(5):
            run("webhooks.create", url=slow.url, events=["*"])
        run("webhooks.create", url=receiver.url, events=["*"])
        for number in range(30):
            run("forums.create", name=f"Forum {number}")
        came: list[float] = []
        quick = receiver.answer

        def timed(handler: Any, received: Received) -> None:
            came.append(time.monotonic())
            quick(handler, received)

        receiver.answer = timed
        started = time.monotonic()
        work_off(patience=1.5)
    assert len(came) == 30
    assert came[-1] - started < 1.2


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
    receiver.answer = answering(400)
    run("forums.create", name="Early")
    work_off()
    clock.move(hours=1)
    since = clock.text
    for name in ("One", "Two", "Three"):
        run("forums.create", name=name)
    work_off()
    receiver.answer = answering(200)
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
    receiver.answer = answering(500)
    run("forums.create", name="News")
    work_off()
    run("webhooks.delete", 1)
    run("forums.create", name="Help")
    work_off()
    assert len(receiver.received) == 1


def test_the_clock_set_back_stalls_nothing(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock) -> None:
    receiver.answer = answering(503)
    run("forums.create", name="One")
    work_off()
    clock.move(days=-30)
    run("forums.create", name="Two")
    receiver.answer = answering(400)
    work_off()
    receiver.answer = answering(200)
    clock.move(minutes=10)
    work_off()
    assert [one.name for one in receiver.received] == ["One", "One", "Two", "One", "Two"]
    assert [one["state"] for one in deliveries(run)] == ["delivered"] * 2


@pytest.fixture
def many() -> Iterator[list[Receiver]]:
    """Ten receivers."""
    receivers = [Receiver() for _ in range(10)]
    for one in receivers:
        one.__enter__()
    yield receivers
    for one in receivers:
        one.__exit__(None, None, None)


def test_every_endpoint_gets_everything_in_order(run: Run, many: list[Receiver], work_off: Off) -> None:
    for one in many:
        run("webhooks.create", url=one.url, events=["forum.created"])
    for number in range(100):
        run("forums.create", name=f"Forum {number}")
    work_off()
    assert [len(one.received) for one in many] == [100] * 10
    assert all(one.ids == many[0].ids for one in many)
    assert all(one.most_at_once == 1 for one in many)
