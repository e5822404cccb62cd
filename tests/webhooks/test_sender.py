"""Attempts that are cut off, at the worst moment too, cost the next ones nothing."""

import asyncio
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.webhook_receiver import Receiver
from trellis.webhooks import sender as module
from trellis.webhooks.guard import Guard
from trellis.webhooks.sender import Sender

ATTEMPTS = 40


async def _find_here(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def _count_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_attempts_that_are_cut_off_while_they_connect_hold_up_no_other(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cut_off(received: module._Received, event: str, _: object) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "cut off" and event == "connection.connect_tcp.complete":
            task.cancel()  # takes effect where it waits next: before it sends

    async def send() -> tuple[int, int | None]:
        sender = Sender(Guard((ip_network("127.0.0.1/32"),), _find_here))
        try:
            await sender.send(f"http://first.test:{receiver.port}/hook", {}, b"{}")
            before = _count_open()
            for number in range(ATTEMPTS):
                attempt = sender.send(f"http://host{number}.test:{receiver.port}/hook", {}, b"{}")
                with suppress(asyncio.CancelledError):
                    await asyncio.create_task(attempt, name="cut off")
            more = _count_open() - before
            return more, (await sender.send(f"http://other.test:{receiver.port}/hook", {}, b"{}")).status
        finally:
            await sender.close()

    monkeypatch.setattr(module._Received, "note", cut_off)
    more, status = asyncio.run(send())
    assert status == 200
    assert len(receiver.received) == 2
    assert more < 10


def test_a_connection_is_used_again_at_once_and_not_after_a_while(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    now = 0.0

    async def find(host: str, _port: int) -> list[str]:
        opened.append(host)
        return ["127.0.0.1"]

    async def send() -> None:
        nonlocal now
        sender = Sender(Guard((ip_network("127.0.0.1/32"),), find))
        for wait in (0, 1, 1, 5):
            now += wait
            assert (await sender.send(f"http://a.test:{receiver.port}/hook", {}, b"{}")).status == 200
        await asyncio.gather(*(sender.send(f"http://b.test:{receiver.port}/hook", {}, b"{}") for _ in range(3)))
        before = _count_open()
        await sender.close()
        assert _count_open() <= before - 4

    monkeypatch.setattr("trellis.webhooks.sender.time.monotonic", lambda: now)
    asyncio.run(send())
    assert opened == ["a.test"] * 2 + ["b.test"] * 3
    assert len(receiver.received) == 7
