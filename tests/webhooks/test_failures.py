"""What an endpoint may do wrong, and what becomes of its messages."""

import asyncio
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fixture_types import Clock, Events, Run
from tests.wait import GIVE_UP
from tests.webhook_receiver import RawServer, Received, Receiver, respond_with
from tests.webhooks.conftest import Off, deliver, deliveries
from trellis.core.gate import Gate
from trellis.webhooks import DeliveryWorker, outbox
from trellis.webhooks.retries import DELAYS

GIGABYTE = 2**30


def test_the_schedule_of_retries(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock) -> None:
    receiver.answer = respond_with(500, b"out of tea")
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
    receiver.answer = respond_with(503)
    for number in range(40):
        run("forums.create", name=f"Forum {number}")
        work_off()
        clock.move(seconds=3)
    assert 5 <= len(receiver.received) < 15  # it was left alone for longer and longer
    receiver.answer = respond_with(200)
    receiver.received.clear()
    clock.move(seconds=61)
    work_off()
    assert [one.name for one in receiver.received] == [f"Forum {number}" for number in range(40)]
    assert run("webhooks.get", 1)["state"] == "on"


def test_a_message_that_is_refused_does_not_hold_up_those_behind_it(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    def picky(handler: Any, received: Received) -> None:
        respond_with(500 if b"Poison" in received.body else 200)(handler, received)

    receiver.answer = picky
    for name in ("One", "Poison", "Two", "Three"):
        run("forums.create", name=name)
    work_off()
    assert [one["state"] for one in deliveries(run)] == ["delivered", "waiting", "delivered", "delivered"]
    receiver.answer = respond_with(200)
    clock.move(seconds=6)
    work_off()
    assert [one["state"] for one in deliveries(run)] == ["delivered"] * 4


@pytest.mark.either_engine
@pytest.mark.parametrize(("asked", "wait"), [("120", 120), ("999999999", 86_400), ("soon", 6)])
def test_retry_after_is_obeyed_within_bounds(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock, asked: str, wait: int
) -> None:
    receiver.answer = respond_with(429, Retry_After=asked)
    run("forums.create", name="One")
    work_off()
    run("forums.create", name="Two")
    clock.move(seconds=wait - 2)
    work_off()
    assert len(receiver.received) == 1
    clock.move(seconds=2)
    receiver.answer = respond_with(204)
    work_off()
    assert [b"One" in one.body for one in receiver.received] == [True, True, False]


@pytest.mark.parametrize("what", ["test", "one delivery", "all that failed"])
def test_what_somebody_sends_by_hand_waits_for_no_pause(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock, what: str
) -> None:
    receiver.answer = respond_with(429, Retry_After="86400")
    began = clock.text
    run("forums.create", name="One")
    work_off()
    run("forums.create", name="Two")
    work_off()
    assert len(receiver.received) == 1
    receiver.answer = respond_with(200)
    clock.move(hours=1)
    if what == "test":
        run("webhooks.test", 1)
    else:
        run("webhooks.redeliver", 1, **({"delivery": 1} if what == "one delivery" else {"failedSince": began}))
    work_off()
    sent = [b"webhook.test" in one.body or one.name for one in receiver.received]
    assert sent == ["One", *([True] if what == "test" else []), "One", "Two"]


def test_an_endpoint_that_is_gone_is_switched_off(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, events: Events
) -> None:
    receiver.answer = respond_with(410)
    run("forums.create", name="One")
    run("forums.create", name="Two")
    work_off()
    assert len(receiver.received) == 1
    now = run("webhooks.get", 1)
    assert (now["enabled"], now["state"], now["disabledBecause"]) == (False, "off", "The endpoint returned 410: it is gone.")
    assert (events()[-1]["operation"], events()[-1]["actor"]["type"]) == ("webhooks.disable", "service")
    receiver.answer = respond_with(200)
    run("webhooks.update", 1, enabled=True)
    work_off()
    assert run("webhooks.get", 1)["disabledBecause"] == ""
    assert [one.name for one in receiver.received] == ["One", "One", "Two"]


def test_a_week_of_nothing_but_failure_switches_an_endpoint_off(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(500)
    for _ in range(8):
        run("forums.create", name="News")
        work_off()
        assert run("webhooks.get", 1)["state"] == "failing"
        clock.move(hours=20, minutes=58)
    work_off()
    assert run("webhooks.get", 1)["state"] == "failing"
    clock.move(hours=1)
    work_off()
    assert run("webhooks.get", 1)["disabledBecause"] == "Every attempt for a week has failed."


def test_time_without_an_attempt_does_not_count(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(500)
    run("forums.create", name="News")
    work_off()
    began = run("webhooks.get", 1)["failingSince"]
    clock.move(days=8)  # the service was down, and the endpoint with it
    work_off()
    down = run("webhooks.get", 1)
    assert (down["state"], down["failingSince"]) == ("failing", down["lastAttemptAt"])
    assert down["failingSince"] > began
    for _ in range(7):
        clock.move(days=1)
        assert run("webhooks.get", 1)["state"] == "failing"
        run("forums.create", name="News")
        work_off()
    assert run("webhooks.get", 1)["disabledBecause"] == "Every attempt for a week has failed."


def test_an_endpoint_that_is_dead_is_switched_off_however_seldom_there_is_something_to_send(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(404)

    def try_all() -> None:
        run("forums.create", name="News")
        for wait in DELAYS:
            clock.move(seconds=1.1 * wait + 1)
            work_off()

    for _ in range(2):
        try_all()
        assert run("webhooks.get", 1)["state"] == "failing"
        clock.move(days=5)  # all messages have been given up long before
    try_all()
    assert run("webhooks.get", 1)["disabledBecause"] == "Every attempt for a week has failed."
    run("webhooks.update", 1, enabled=True)
    try_all()
    assert run("webhooks.get", 1)["state"] == "failing"  # the week has begun anew


def test_a_success_ends_the_week(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock) -> None:
    for status in (*[500] * 6, 200, *[500] * 7):
        receiver.answer = respond_with(status)
        run("forums.create", name="News")
        work_off()
        clock.move(days=1)
    assert run("webhooks.get", 1)["state"] == "failing"
    work_off()
    assert run("webhooks.get", 1)["disabledBecause"] == "Every attempt for a week has failed."


@pytest.mark.either_engine
@pytest.mark.parametrize("content", [None, "nothing"], ids=["missing", "empty"])
def test_certificates_that_cannot_be_read_are_a_failure_like_any_other(
    gate: Gate,
    run: Run,
    receiver: Receiver,
    hook: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    content: str | None,
) -> None:
    file = tmp_path / "certificates.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    run("forums.create", name="News")
    asyncio.run(deliver(DeliveryWorker(gate)))
    (delivery,) = deliveries(run)
    (attempt,) = delivery["attempts"]
    assert "SSL_CERT_FILE" in attempt["error"]
    assert (delivery["state"], run("webhooks.get", 1)["state"]) == ("waiting", "failing")


@pytest.mark.either_engine
def test_a_redirect_is_a_failure_and_not_followed(run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off) -> None:
    receiver.answer = respond_with(307, Location="http://169.254.169.254/latest/meta-data")
    run("forums.create", name="News")
    work_off()
    (attempt,) = deliveries(run)[0]["attempts"]
    assert (attempt["status"], attempt["error"]) == (307, None)
    assert deliveries(run)[0]["state"] == "waiting"


def silent(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass  # until the sender has had enough


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def broken(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf")


def mute(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def garbled(connection: socket.socket) -> None:
    connection.sendall(b"220 smtp.example ESMTP\r\n")


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("act", "limit", "status", "error"),
    [
        (silent, 0.3, None, "There was no complete response within 0.3 seconds."),
        (dripping, 3, 200, "There was no complete response within 3 seconds."),  # the head arrives until then on any machine
        (broken, GIVE_UP, 200, "The connection was interrupted"),
        (mute, GIVE_UP, None, "The connection was interrupted"),
        (garbled, GIVE_UP, None, "The connection was interrupted"),
    ],
)
def test_what_is_no_whole_answer_is_a_failure(
    run: Run, work_off: Off, act: Any, limit: float, status: int | None, error: str
) -> None:
    with RawServer(act) as server:
        run("webhooks.create", url=server.url, events=["*"])
        run("forums.create", name="News")
        work_off(timeout=limit)
        (delivery,) = deliveries(run)
    assert (delivery["state"], delivery["attempts"][0]["status"]) == ("waiting", status)
    assert delivery["attempts"][0]["error"].startswith(error)
    assert server.count == 1


@pytest.mark.either_engine
def test_of_a_gigabyte_of_answer_64_kib_are_read(run: Run, work_off: Off) -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % GIGABYTE)
        while sent < GIGABYTE:
            sent += connection.send(b"x" * 65_536)

    with RawServer(flood) as server:
        run("webhooks.create", url=server.url, events=["*"])
        run("forums.create", name="News")
        work_off()
    assert sent < GIGABYTE / 50
    (delivery,) = deliveries(run)
    assert delivery["state"] == "delivered"
    assert len(delivery["attempts"][0]["answer"]) == 4096


@pytest.mark.either_engine
def test_of_what_is_no_http_a_little_is_kept_and_no_secret(run: Run, work_off: Off) -> None:
    def babbling(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + secret + b" " + b"\x01" * 60_000 + b"\r\n\r\n")

    with RawServer(babbling) as server:
        secret = run("webhooks.create", url=server.url, events=["*"])["secret"].encode()
        run("forums.create", name="News")
        work_off()
    (attempt,) = deliveries(run)[0]["attempts"]
    assert attempt["error"].startswith("The connection was interrupted: illegal header line")
    assert secret.decode() not in attempt["error"]
    assert len(attempt["error"]) < 1_000


@pytest.mark.either_engine
def test_an_endpoint_that_does_not_listen_is_a_failure_in_words(run: Run, work_off: Off) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    run("webhooks.create", url=f"http://127.0.0.1:{port}/", events=["*"])
    run("forums.create", name="News")
    work_off()
    assert deliveries(run)[0]["attempts"][0]["error"].startswith("The connection failed")


def test_a_slow_endpoint_does_not_hold_up_the_others(run: Run, receiver: Receiver, work_off: Off) -> None:
    all_came = threading.Event()
    waited: list[bool] = []
    quick = receiver.answer

    def slow(_connection: socket.socket) -> None:
        waited.append(all_came.wait(60))

    def counting(handler: Any, received: Received) -> None:
        quick(handler, received)
        if len(receiver.received) == 30:
            all_came.set()

    receiver.answer = counting
    with RawServer(slow) as server:
        for _ in range(5):
            run("webhooks.create", url=server.url, events=["*"])
        run("webhooks.create", url=receiver.url, events=["*"])
        for number in range(30):
            run("forums.create", name=f"Forum {number}")
        work_off(timeout=120)
    assert waited == [True] * 5
    assert [one.name for one in receiver.received] == [f"Forum {number}" for number in range(30)]


def test_after_a_long_outage_everything_comes_in_order_and_the_outbox_has_stayed_small(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "FILL", 10)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    run("webhooks.update", 1, url=f"http://127.0.0.1:{port}/")
    for number in range(40):
        run("forums.create", name=f"Forum {number}")
    for _ in range(25):
        work_off()
        clock.move(minutes=12)
    assert len(deliveries(run)) <= 12
    run("webhooks.update", 1, url=receiver.url)
    work_off()
    assert [one.name for one in receiver.received] == [f"Forum {number}" for number in range(40)]


def test_a_message_on_which_the_endpoint_hangs_holds_up_the_others_for_minutes_at_most(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    def picky(handler: Any, received: Received) -> None:
        respond_with(503 if received.name == "Poison" else 200)(handler, received)

    receiver.answer = picky
    for name in ("Poison", "One", "Two"):
        run("forums.create", name=name)
    minutes = 0.0
    while "Two" not in [one.name for one in receiver.received]:
        work_off()
        clock.move(seconds=15)
        minutes += 0.25
    assert minutes <= 5
    for _ in range(25):
        run("forums.create", name="More")
        work_off()
        clock.move(seconds=61)
    poison = [one for one in receiver.received if one.name == "Poison"]
    assert len(poison) <= 10 + 8
    assert len([one for one in receiver.received if one.name == "More"]) >= 20
