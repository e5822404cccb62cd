"""What the tests of delivery may ask for: webhooks may go to this machine, and the clock begins at the true time."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conftest import NewSettings
from tests.fixture_types import Clock, Run
from tests.wait import GIVE_UP
from tests.webhook_receiver import Receiver
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.webhooks.guard import Guard
from trellis.webhooks.sender import Sender
from trellis.webhooks.worker import DeliveryWorker

Off = Callable[..., None]


@pytest.fixture
def clock() -> Clock:
    """The gate's clock. Receivers refuse what is older than five minutes by the true time, so it begins there."""
    return Clock(datetime.now(UTC))


@pytest.fixture
def settings(new_settings: NewSettings) -> Settings:
    """Settings that let webhooks go to this machine."""
    return replace(new_settings(), webhook_allow=("127.0.0.1/32",))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers 200."""
    with Receiver() as receiver:
        yield receiver


async def deliver(worker: DeliveryWorker) -> None:
    """Let a worker send everything that is due, and let its connections go."""
    try:
        while await worker.look():
            await worker.settle()
    finally:
        await worker.close()


@pytest.fixture
def work_off(gate: Gate) -> Off:
    """Send everything that is due by the gate's clock, with a worker of its own."""

    def off(timeout: float = GIVE_UP, **given: Any) -> None:
        guard = Guard(gate.environment.outgoing.allowed, given.pop("resolve", None))
        asyncio.run(deliver(DeliveryWorker(gate, Sender(guard, timeout=timeout, **given))))

    return off


@pytest.fixture
def hook(run: Run, receiver: Receiver) -> dict[str, Any]:
    """A webhook for everything, to the receiver."""
    return dict(run("webhooks.create", url=receiver.url, events=["*"]))


def deliveries(run: Run, **filters: Any) -> list[dict[str, Any]]:
    """Return the deliveries of webhook 1, the oldest first."""
    listed = run("deliveries.list", webhook=1, limit=1000, **filters)["results"]
    return [dict(run("deliveries.get", one["id"])) for one in reversed(listed)]
