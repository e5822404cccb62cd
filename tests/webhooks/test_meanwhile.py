"""What happens while a message is on its way: somebody changes something, or the outcome cannot be written."""

import asyncio
import gc
import logging
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from tests.fixture_types import Clock, MakeKey, Run
from tests.wait import wait_in_loop_until
from tests.webhook_receiver import Received, Receiver, respond_with
from tests.webhooks.conftest import Off, deliver, deliveries
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.webhooks import DeliveryWorker, worker
from trellis.webhooks.guard import Guard
from trellis.webhooks.retries import DELAYS
from trellis.webhooks.sender import Sender


@pytest.mark.parametrize("status", [410, 503])
def test_what_the_old_address_answers_is_not_held_against_the_new_one(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock, status: int
) -> None:
    with Receiver() as other:

        def moving(handler: Any, received: Received) -> None:
            clock.move(seconds=1)
            run("webhooks.update", 1, url=other.url)
            respond_with(status, retry_after="86400")(handler, received)

        receiver.answer = moving
        run("forums.create", name="News")
        work_off()
        assert (run("webhooks.get", 1)["state"], other.ids) == ("on", receiver.ids)
    assert [attempt["status"] for attempt in deliveries(run)[0]["attempts"]] == [status, 200]


def test_who_has_given_another_address_before_the_old_one_is_switched_off_keeps_it_on(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = gate.submit
    with Receiver() as other:

        def submit_late(call: Call) -> Any:
            if call.operation == "webhooks.disable":
                run("webhooks.update", 1, url=other.url)
            return submit(call)

        monkeypatch.setattr(gate, "submit", submit_late)
        receiver.answer = respond_with(410)
        run("forums.create", name="News")
        work_off()
        assert (run("webhooks.get", 1)["state"], other.ids) == ("on", receiver.ids)


def test_a_webhook_that_is_switched_on_again_is_not_switched_off_for_the_week_before(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(503)
    for _ in range(7):
        run("forums.create", name="News")
        work_off()
        clock.move(days=1)

    def switching(handler: Any, received: Received) -> None:
        run("webhooks.update", 1, enabled=False)
        run("webhooks.update", 1, enabled=True)
        receiver.answer = respond_with(200)
        respond_with(503)(handler, received)

    receiver.answer = switching
    work_off()
    assert run("webhooks.get", 1)["state"] == "on"
    assert {one["state"] for one in deliveries(run)} == {"delivered"}


def test_a_webhook_that_is_deleted_was_not_taken_over(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, caplog: pytest.LogCaptureFixture
) -> None:
    def deleting(handler: Any, received: Received) -> None:
        run("webhooks.delete", 1)
        respond_with(200)(handler, received)

    receiver.answer = deleting
    run("forums.create", name="News")
    work_off()
    assert len(receiver.received) == 1
    assert "taken over" not in caplog.text


def test_a_message_that_is_to_be_sent_again_while_its_last_attempt_fails_is(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    receiver.answer = respond_with(400)
    run("forums.create", name="News")
    for wait in DELAYS[1:]:
        work_off()
        clock.move(seconds=1.2 * wait)

    def repeating(handler: Any, received: Received) -> None:
        receiver.answer = respond_with(200)
        assert run("webhooks.redeliver", 1, delivery=1)["count"] == 1
        respond_with(400)(handler, received)

    receiver.answer = repeating
    work_off()
    clock.move(minutes=1)  # it has refused ten in a row
    work_off()
    (delivery,) = deliveries(run)
    assert (delivery["state"], len(delivery["attempts"])) == ("delivered", len(DELAYS) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("all_fail", [False, True], ids=["too many writes wait", "the disk is full"])
def test_a_message_is_not_sent_again_and_again_while_its_outcome_cannot_be_written(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], monkeypatch: pytest.MonkeyPatch, all_fail: bool
) -> None:
    run("forums.create", name="News")
    write, refused, is_over = gate.store.write, 0, False

    def refusing(work: Any, *, quiet: bool = False) -> Future[Any]:
        nonlocal refused
        if is_over or not receiver.received or (quiet and not all_fail):
            return write(work, quiet=quiet)
        refused += 1
        future: Future[Any] = Future()
        future.set_exception(Refused("BUSY", "Not now."))
        return future

    monkeypatch.setattr(type(gate.store), "write", staticmethod(refusing))

    async def scene() -> None:
        nonlocal is_over
        worker = DeliveryWorker(gate, lease=2.0)
        running = asyncio.create_task(worker.run())
        try:
            await wait_in_loop_until(lambda: refused >= (30 if all_fail else 5))
            assert len(receiver.received) == 1
            is_over = True
            await wait_in_loop_until(lambda: deliveries(run)[0]["state"] == "delivered")
        finally:
            is_over = True
            worker.stop()
            await running

    asyncio.run(scene())
    assert len(receiver.received) == 1, "although no lease can be renewed on a full disk"


def test_a_worker_ends_quietly_while_the_disk_is_full(
    gate: Gate,
    run: Run,
    receiver: Receiver,
    hook: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run("forums.create", name="News")
    write = gate.store.write

    def refusing(work: Any, *, quiet: bool = False) -> Future[Any]:
        if not receiver.received:
            return write(work, quiet=quiet)
        future: Future[Any] = Future()
        future.set_exception(Refused("BUSY", "The disk is full."))
        return future

    monkeypatch.setattr(type(gate.store), "write", staticmethod(refusing))

    async def scene() -> None:
        worker = DeliveryWorker(gate, lease=0.5)
        running = asyncio.create_task(worker.run())
        await wait_in_loop_until(lambda: worker._lost)
        worker.stop()
        await running

    asyncio.run(scene())
    gc.collect()
    assert [one.message for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_a_message_is_not_sent_again_because_the_next_one_was_called_off_on_a_full_disk(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, is_full, go_on = gate.store.write, False, threading.Event()

    def refusing(work: Any, *, quiet: bool = False) -> Future[Any]:
        if not is_full:
            return write(work, quiet=quiet)
        future: Future[Any] = Future()
        future.set_exception(Refused("BUSY", "The disk is full."))
        return future

    def slow_after_the_first(handler: Any, received: Received) -> None:
        nonlocal is_full
        if received.name == "One":
            is_full = True
        else:
            go_on.wait(60)
        respond_with(200)(handler, received)

    async def scene() -> None:
        nonlocal is_full
        worker = DeliveryWorker(gate, lease=0.5)
        running = asyncio.create_task(worker.run())
        try:
            await wait_in_loop_until(lambda: len(receiver.received) == 2)
            await wait_in_loop_until(lambda: worker._lost)
            is_full = False
            go_on.set()
            await wait_in_loop_until(lambda: {one["state"] for one in deliveries(run)} == {"delivered"})
        finally:
            is_full = False
            go_on.set()
            worker.stop()
            await running

    monkeypatch.setattr(type(gate.store), "write", staticmethod(refusing))
    receiver.answer = slow_after_the_first
    for name in ("One", "Two"):
        run("forums.create", name=name)
    asyncio.run(scene())
    assert [one.name for one in receiver.received] == ["One", "Two", "Two"]


def test_what_was_proposed_for_a_webhook_can_be_approved_after_its_next_message(
    gate: Gate, run: Run, key: MakeKey, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    """How its delivery goes is nothing that somebody has changed since."""
    text = key(["webhooks.update"], bounds={"webhooks.update": {"level": "propose"}})
    agent = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    call = Call("webhooks.update", agent, {"description": "Search"}, 1)
    number = gate.run(call).value["id"]
    receiver.answer = respond_with(503)
    run("forums.create", name="News")
    work_off()
    assert run("webhooks.get", 1)["state"] == "failing"
    assert gate.run(call).value["id"] == number
    assert run("proposals.approve", number)["state"] == "approved"
    assert run("webhooks.get", 1)["description"] == "Search"

    number = gate.run(call._replace(raw={"description": "Index"})).value["id"]
    run("webhooks.update", 1, events=["forum.*"])
    clock.move(minutes=2)
    receiver.answer = respond_with(200)
    work_off()
    with pytest.raises(Refused) as refused:
        run("proposals.approve", number)
    assert refused.value.message == "PROPOSAL_OUTDATED"
    assert [one["field"] for one in refused.value.facts["differences"]] == ["events"]


def test_a_message_is_not_taken_for_the_one_that_was_skipped_while_it_was_sent(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off
) -> None:
    """On SQLite, the row of the one may have the id that the row of the other had."""
    quick = receiver.answer
    with Receiver() as other:
        run("webhooks.create", url=other.url, events=["category.*"])

        def skipping(handler: Any, received: Received) -> None:
            receiver.answer = quick
            run("webhooks.update", 1, skipMissed=True)
            run("categories.create", name="Skins")
            run("forums.create", name="Help")
            work_off()  # another process
            quick(handler, received)

        receiver.answer = skipping
        run("forums.create", name="News")
        work_off()
        assert [one.name for one in other.received] == ["Skins"]
    assert [one.name for one in receiver.received] == ["News", "Skins", "Help"]
    assert all(len(one["attempts"]) == 1 for one in deliveries(run))


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        (("webhooks.update", {"enabled": False}), ["One"]),
        (("webhooks.update", {"skipMissed": True}), ["One"]),
        (("webhooks.update", {"events": ["category.*"]}), ["One", "Skins"]),
        (("webhooks.rotate", {"overlapHours": 0}), ["One", "Two", "Skins"]),
        (("webhooks.delete", {}), ["One"]),
    ],
)
def test_a_change_holds_from_the_next_message_on(
    run: Run,
    receiver: Receiver,
    hook: dict[str, Any],
    work_off: Off,
    clock: Clock,
    change: tuple[str, dict[str, Any]],
    sent: list[str],
) -> None:
    operation, given = change
    quick, secrets = receiver.answer, [hook["secret"]]

    def changing(handler: Any, received: Received) -> None:
        receiver.answer = quick
        clock.move(seconds=1)
        secrets.append((run(operation, 1, **given) or {}).get("secret", hook["secret"]))
        quick(handler, received)

    receiver.answer = changing
    run("forums.create", name="One")
    run("forums.create", name="Two")
    run("categories.create", name="Skins")
    work_off()
    assert [one.name for one in receiver.received] == sent
    for received in receiver.received[1:]:
        received.verified(secrets[1])


def test_a_new_address_gets_the_next_message(
    run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, clock: Clock
) -> None:
    quick = receiver.answer
    with Receiver() as other:

        def moving(handler: Any, received: Received) -> None:
            clock.move(seconds=1)
            run("webhooks.update", 1, url=other.url)
            quick(handler, received)

        receiver.answer = moving
        run("forums.create", name="One")
        run("forums.create", name="Two")
        work_off()
        assert ([one.name for one in receiver.received], [one.name for one in other.received]) == (["One"], ["Two"])


def test_a_message_that_was_sent_is_not_sent_again_because_the_next_one_could_not_be(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any]
) -> None:
    errors = [None, RuntimeError("unforeseen")]

    async def resolve(host: str, port: int) -> list[str]:
        del host, port
        if errors and (error := errors.pop(0)) is not None:
            raise error
        return ["127.0.0.1"]

    receiver.answer = respond_with(200, Connection="close")
    run("webhooks.update", 1, url=f"http://hooks.test:{receiver.port}")
    receiver.received.clear()
    for name in ("One", "Two"):
        run("forums.create", name=name)
    asyncio.run(deliver(DeliveryWorker(gate, Sender(Guard(gate.environment.outgoing.allowed, resolve)))))
    assert errors == []
    assert [one.name for one in receiver.received if one.name] == ["One", "Two"]


def test_a_message_that_was_sent_is_not_sent_again_because_the_process_stopped_before_its_outcome_was_written(
    gate: Gate, run: Run, receiver: Receiver, hook: dict[str, Any], work_off: Off, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_GRACE", 0.1)
    go_on, quick = threading.Event(), receiver.answer
    busy: list[Future[Any]] = []

    def keeping_the_writer_busy(handler: Any, received: Received) -> None:
        receiver.answer = quick
        busy.append(gate.store.write(lambda _: go_on.wait(60), quiet=True))
        quick(handler, received)

    async def scene() -> None:
        stopping = DeliveryWorker(gate)
        running = asyncio.create_task(stopping.run())
        try:
            await wait_in_loop_until(lambda: bool(busy) and busy[0].running() and gate.store.writer.waiting > 0)
            stopping.stop()
            await asyncio.wait([running], timeout=0.5)  # the delivery has been called off by then
        finally:
            go_on.set()
            await running

    receiver.answer = keeping_the_writer_busy
    run("forums.create", name="News")
    asyncio.run(scene())
    work_off()
    assert receiver.ids == [one["messageId"] for one in deliveries(run)]
    assert [len(one["attempts"]) for one in deliveries(run)] == [1]
