"""A process that makes changes and delivers them at the same time, to be killed. Its arguments are a database and a rate."""

import asyncio
import sys

from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.webhooks import DeliveryWorker

LEASE = 1.0


async def _change(gate: Gate, rate: float) -> None:
    """Make so many changes a second; each is acknowledged on standard output. A rate of 0 makes none."""
    number = 0
    while rate:
        number += 1
        operation = ("forums.create", {"name": f"Forum {number}"})
        done = await asyncio.wrap_future(gate.submit(Call(operation[0], TERMINAL, operation[1])))
        sys.stdout.write(f"{done.event}\n")
        sys.stdout.flush()
        await asyncio.sleep(1 / rate)


async def _live() -> None:
    settings = Settings.load({"TRELLIS_DATABASE_URL": sys.argv[1], "TRELLIS_WEBHOOK_ALLOW": "127.0.0.1"}, None)
    gate = compose(settings)
    await asyncio.gather(DeliveryWorker(gate, lease=LEASE).run(), _change(gate, float(sys.argv[2])))


def main() -> None:
    """Live until the end comes."""
    asyncio.run(_live())
