"""Workers: how they share endpoints, and what happens when one of them dies, is late, or gives way."""

import asyncio
import logging
import os
import socket
import threading
import tracemalloc
from typing import Any, Final

import pytest
import sqlalchemy as sa

from tests.fixture_types import Clock, Run
from tests.wait import GIVE_UP, wait_in_loop_until, wait_until
from tests.webhook_receiver import RawServer, Received, Receiver, respond_with
from tests.webhooks.conftest import Off, deliver
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.housekeeping import Purges
from trellis.settings import Settings
from trellis.store.engine import Transaction
from trellis.store.tables import webhooks as table
from trellis.store.webhooks import endpoints, log
from trellis.webhooks import Background, DeliveryWorker, outbox
from trellis.webhooks.worker import LEASE

EVENTS: Final = int(os.environ.get("TRELLIS_TEST_EVENTS", "100"))


class Ticks:
    """A clock that counts seconds, and that nobody but the test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def hold(gate: Gate, owner: str | None, heartbeat: int = 1) -> None:
    """Let somebody hold webhook 1."""
    change = sa.update(table).values(owner=owner, heartbeat=heartbeat)
    gate.store.write(lambda tx: tx.connection.execute(change)).result(30)


def holder(gate: Gate) -> str | None:
    with gate.store.reading() as tx:
        found = endpoints.find(tx, 1)
    assert found is not None
    return found.owner


def flood(gate: Gate, count: int, **fields: Any) -> None:
    """Make many changes at once."""
    futures = [gate.submit(Call("forums.create", TERMINAL, {"name": f"Forum {number}"} | fields)) for number in range(count)]
    for future in futures:
        future.result(60)


def test_what_a_dead_worker_held_is_taken_over_when_it_has_given_no_sign_for_long(gate: Gate, run: Run, receiver: Receiver) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    run("forums.create", name="News")
    hold(gate, "dead", 7)
    ticks = Ticks()

    async def scene() -> None:
        worker = DeliveryWorker(gate, clock=ticks)
        assert await worker.look() == 0
        ticks.at += LEASE - 0.1
        assert await worker.look() == 0
        hold(gate, "dead", 8)  # not dead after all
        ticks.at += 0.2
        assert await worker.look() == 0
        ticks.at += LEASE + 0.1
        assert await worker.look() == 1
        await worker.settle()
        await worker.close()

    asyncio.run(scene())
    assert len(receiver.received) == 1
    assert holder(gate) is None


def test_a_worker_that_was_taken_for_dead_writes_nothing(
    gate: Gate, run: Run, receiver: Receiver, work_off: Off, caplog: pytest.LogCaptureFixture
) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    run("forums.create", name="News")

    def meanwhile(handler: Any, received: Received) -> None:
        hold(gate, "another", 9)
        respond_with(200)(handler, received)

    receiver.answer = meanwhile
    with caplog.at_level(logging.WARNING, logger="trellis"):
        work_off()
    assert "taken over" in caplog.text
    (delivery,) = run("deliveries.list")["results"]
    assert (delivery["state"], delivery["attempts"]) == ("waiting", [])
    hold(gate, None)
    receiver.answer = respond_with(200)
    work_off()
    assert len(receiver.distinct) == 1
    assert len(receiver.received) == 2


def test_a_worker_that_cannot_renew_its_hold_calls_everything_off(
    gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    closed = threading.Event()

    def silent(connection: socket.socket) -> None:
        while connection.recv(65_536):
            pass
        closed.set()

    ticks = Ticks()

    async def scene() -> None:
        worker = DeliveryWorker(gate, clock=ticks)
        assert await worker.look() == 1
        await wait_in_loop_until(lambda: server.count > 0)
        ticks.at += LEASE / 2
        await worker.renew_lease()
        assert (held := holder(gate)) is not None
        assert str(os.getpid()) in held
        monkeypatch.setattr(endpoints, "renew", lambda *_: 1 / 0)
        ticks.at += LEASE / 2
        await worker.renew_lease()
        assert not closed.is_set()
        ticks.at += LEASE / 2
        await worker.renew_lease()
        await worker.settle()
        await worker.close()

    with RawServer(silent) as server, caplog.at_level(logging.WARNING, logger="trellis"):
        run("webhooks.create", url=server.url, events=["*"])
        run("forums.create", name="News")
        asyncio.run(scene())
        assert closed.wait(60)
    assert "messages in progress are cancelled" in caplog.text


def test_two_workers_racing_send_each_message_once_and_one_at_a_time(settings: Settings, gate: Gate, run: Run) -> None:
    receivers = [Receiver() for _ in range(4)]
    for one in receivers:
        one.__enter__()
        run("webhooks.create", url=one.url, events=["*"])
    gates = [compose(settings) for _ in range(2)]

    async def scene() -> None:
        workers = [DeliveryWorker(each) for each in gates]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        for number in range(20):
            await asyncio.wrap_future(gate.submit(Call("forums.create", TERMINAL, {"name": f"Forum {number}"})))
            await asyncio.sleep(0.01)
        await wait_in_loop_until(lambda: all(len(one.received) >= 20 for one in receivers))
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)

    asyncio.run(scene())
    for each in gates:
        each.store.close()
    for one in receivers:
        one.__exit__(None, None, None)
        assert [received.name for received in one.received] == [f"Forum {number}" for number in range(20)]
        assert one.most_at_once == 1
    assert holder(gate) is None


def test_many_events_are_delivered_in_bounded_memory(gate: Gate, run: Run, receiver: Receiver, work_off: Off) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    flood(gate, EVENTS, description="x" * 100_000)
    tracemalloc.start()
    seen: list[int] = []

    def counting(handler: Any, received: Received) -> None:
        if len(receiver.received) % 20 == 0:
            seen.append(tracemalloc.get_traced_memory()[0] - sum(len(one.body) for one in receiver.received))
        respond_with(200)(handler, received)

    receiver.answer = counting
    try:
        work_off()
    finally:
        tracemalloc.stop()
    assert len(receiver.received) == len(receiver.distinct) == EVENTS
    assert max(seen) < 4 * 2**20, seen


def test_events_that_nobody_wants_are_passed_over_and_leave_no_rows(
    gate: Gate, run: Run, receiver: Receiver, work_off: Off, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "FILL", 10)
    run("webhooks.create", url=receiver.url, events=["blog.*"])
    flood(gate, 95)
    run("blogs.create", name="Notebook")
    work_off()
    assert [one.name for one in receiver.received] == ["Notebook"]
    assert len(run("deliveries.list")["results"]) == 1


def test_the_log_is_purged_by_age_and_by_number_and_with_its_webhook(
    gate: Gate, run: Run, receiver: Receiver, work_off: Off, clock: Any
) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    for name in ("One", "Two", "Three"):
        run("forums.create", name=name)
        work_off()
        clock.move(days=1)

    def left() -> int:
        return len(run("deliveries.list", webhook=1)["results"])

    clock.move(days=28, hours=1)
    asyncio.run(Purges(gate, gate.store.settings).run(trusting=True))
    assert left() == 1
    clock.move(days=-30)
    run("forums.create", name="Four")
    work_off()
    assert left() == 2
    assert gate.store.write(lambda tx: log.purge_webhook(tx, 1, 1)).result(30) == 1
    assert left() == 1
    run("webhooks.delete", 1)
    asyncio.run(Purges(gate, gate.store.settings).run(trusting=True))
    with gate.store.reading() as tx:
        assert log.search(tx, {}, 10).found == []


def test_what_another_worker_takes_over_at_the_last_moment_is_not_delivered_by_the_one_that_held_it(
    gate: Gate, run: Run, receiver: Receiver
) -> None:
    for _ in range(2):
        run("webhooks.create", url=receiver.url, events=["*"])
    run("webhooks.test", 1)
    gate.store.write(lambda tx: outbox.fill_outbox(tx, frozenset(), gate.now())).result(30)
    go_on = threading.Event()

    def take_over(tx: Transaction) -> None:
        go_on.wait(60)
        tx.connection.execute(sa.update(table).where(table.c.id == 1).values(owner="other"))

    async def scene() -> None:
        worker = DeliveryWorker(gate)
        hold(gate, worker._id)
        gate.store.write(take_over)
        assert await worker.look() == 2
        await wait_in_loop_until(lambda: gate.store.writer.waiting == 2)
        go_on.set()
        await worker.settle()
        await worker.close()

    try:
        asyncio.run(scene())
    finally:
        go_on.set()
    assert (receiver.received, holder(gate)) == ([], "other")


def test_delivery_beside_serving_starts_and_stops(gate: Gate, run: Run, receiver: Receiver) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    background = Background(gate)
    background.stop()
    background.start()
    run("forums.create", name="News")
    wait_until(lambda: receiver.received)
    background.stop()
    assert len(receiver.received) == 1
    assert holder(gate) is None


def test_delivery_that_cannot_begin_does_not_keep_the_process_from_ending(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("Too many open files")

    background = Background(gate)
    monkeypatch.setattr(asyncio.events, "new_event_loop", fail)
    background.start()
    stopping = threading.Thread(target=background.stop, daemon=True)
    stopping.start()
    stopping.join(GIVE_UP)
    assert not stopping.is_alive()
    assert "Too many open files" in caplog.text


def test_a_worker_that_ends_waits_a_little_for_what_is_under_way(gate: Gate, run: Run) -> None:
    stopped = threading.Event()

    def slow(connection: socket.socket) -> None:
        stopped.wait(60)
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def scene() -> None:
        worker = DeliveryWorker(gate)
        running = asyncio.create_task(worker.run())
        await wait_in_loop_until(lambda: server.count > 0)
        worker.stop()
        stopped.set()
        await running

    with RawServer(slow) as server:
        run("webhooks.create", url=server.url, events=["*"])
        run("forums.create", name="News")
        asyncio.run(scene())
    assert run("deliveries.list")["results"][0]["state"] == "delivered"
    assert holder(gate) is None


def test_a_database_that_is_away_for_a_moment_ends_nothing(
    gate: Gate, run: Run, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    run("forums.create", name="News")
    listed = endpoints.list_enabled
    failures = [OSError("away")]

    def sometimes(tx: Any) -> Any:
        if failures:
            raise failures.pop()
        return listed(tx)

    monkeypatch.setattr(endpoints, "list_enabled", sometimes)

    async def scene() -> None:
        worker = DeliveryWorker(gate)
        running = asyncio.create_task(worker.run())
        await wait_in_loop_until(lambda: bool(receiver.received))
        worker.stop()
        await running

    with caplog.at_level(logging.ERROR, logger="trellis"):
        asyncio.run(scene())
    assert "Looking for due webhooks failed" in caplog.text
    assert len(receiver.received) == 1


def test_a_secret_that_is_lost_is_told_in_the_log(settings: Settings, run: Run, receiver: Receiver) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    hold_secret = sa.update(table).values(secret="derived:0123456789ab:AAAA")
    gate = compose(settings)
    gate.store.write(lambda tx: tx.connection.execute(hold_secret)).result(30)
    run("forums.create", name="News")
    asyncio.run(deliver(DeliveryWorker(gate)))
    gate.store.close()
    (attempt,) = run("deliveries.list")["results"][0]["attempts"]
    assert "TRELLIS_WEBHOOK_KEY" in attempt["error"]
    assert receiver.received == []


def test_while_a_secret_is_lost_no_message_loses_its_turn(
    gate: Gate, run: Run, receiver: Receiver, work_off: Off, clock: Clock
) -> None:
    run("webhooks.create", url=receiver.url, events=["forum.*"])
    with gate.store.reading() as tx:
        (secret,) = tx.connection.execute(sa.select(table.c.secret)).scalars()
    change = sa.update(table).values(secret=sa.bindparam("other"))
    gate.store.write(lambda tx: tx.connection.execute(change, {"other": "derived:0123456789ab:AAAA"})).result(30)
    names = [f"Forum {number}" for number in range(12)]
    for name in names:
        run("forums.create", name=name)
        work_off()
        clock.move(seconds=61)
    gate.store.write(lambda tx: tx.connection.execute(change, {"other": secret})).result(30)
    work_off()
    assert [one.name for one in receiver.received] == names
