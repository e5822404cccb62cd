"""Measure what trellis does with four times the writes that it can take: `python -m bench.overload`.

First the best rate, with as many clients as keep it busy, each of which waits for its answer. Then requests in an open loop: they
come at four times that rate whether those before them were answered or not, each on a connection that is free, or on a new one.
Then the best rate again. The service has one core, and the client another one. Waits are counted from when a request was due, so
that a client that is late makes them longer, never shorter; how late it was is told too.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

import uvloop

from bench.client import Client, Tally
from bench.process import Server, cores
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store.migrate import migrate

CLIENTS: Final = 128  # that keep it busy
MOST: Final = 1_800  # connections of the open loop
TIMES: Final = 4
TICK: Final = 0.005  # seconds between two handfuls of requests
PATIENCE: Final = 60.0  # seconds for the last answers


@dataclass(frozen=True, slots=True)
class Load:
    """Creates forums over HTTP."""

    host: str
    port: int
    key: str

    def request(self, number: int) -> bytes:
        """Write one request."""
        body = b'{"name":"Forum %d"}' % number
        head = f"POST /api/forums/forums HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.key}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    async def connect(self, tally: Tally, on_free: Any) -> Client:
        """Open a connection."""
        _, client = await asyncio.get_running_loop().create_connection(lambda: Client(tally, on_free), self.host, self.port)
        return client

    async def closed_loop(self, seconds: float) -> float:
        """Return the writes a second that are done for clients that each wait for their answer."""
        tally, until = Tally(), time.monotonic() + seconds

        def again(client: Client) -> None:
            if time.monotonic() < until:
                client.send(self.request(tally.sent))

        clients = [await self.connect(tally, again) for _ in range(CLIENTS)]
        for client in clients:
            again(client)
        await asyncio.sleep(seconds)
        done = tally.answered_well
        await asyncio.sleep(1)  # for the last answers
        for client in clients:
            client.close()
        return done / seconds

    async def open_loop(self, rate: float, seconds: float) -> tuple[Tally, float]:
        """Send so many requests a second; return what came back, and the writes done a second meanwhile."""
        tally, free, opened = Tally(), deque[Client](), 0
        clients: list[Client] = []
        connecting: set[asyncio.Task[None]] = set()

        async def connect_and_send(number: int, at: float) -> None:
            client = await self.connect(tally, free.append)
            clients.append(client)
            client.send(self.request(number), at)

        began = time.monotonic()
        due = 0
        while (passed := time.monotonic() - began) < seconds:
            for _ in range(int(passed * rate) - due):
                due += 1
                at = began + due / rate
                tally.late = max(tally.late, time.monotonic() - at)
                while free and not free[0].is_open:
                    free.popleft()
                    opened -= 1
                if free:
                    free.popleft().send(self.request(due), at)
                elif opened < MOST:
                    opened += 1
                    connecting.add(task := asyncio.create_task(connect_and_send(due, at)))
                    task.add_done_callback(connecting.discard)
                else:
                    tally.unsent += 1
            await asyncio.sleep(TICK)
        done = tally.answered_well
        until = time.monotonic() + PATIENCE
        if connecting:
            await asyncio.wait(connecting, timeout=PATIENCE)
        while sum(tally.statuses.values()) + tally.lost < tally.sent and time.monotonic() < until:  # noqa: ASYNC110  # counts
            await asyncio.sleep(TICK)
        for client in clients:
            client.close()
        return tally, done / seconds


def memory_of(server: Server) -> int:
    """Return the resident memory of a server in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


async def measure(load: Load, server: Server, seconds: float) -> dict[str, Any]:
    """Measure the best rate, the overload, and what is after it."""
    await load.closed_loop(1)
    began = server.cpu()
    rates = [await load.closed_loop(seconds) for _ in range(3)]
    best, alone = median(rates), sum(rates) * seconds / (server.cpu() - began)
    before = memory_of(server)
    spent = server.cpu()
    tally, good = await load.open_loop(TIMES * best, seconds)
    processor, during = server.cpu() - spent, memory_of(server)
    refused = sorted(wait for status, waits in tally.waits.items() if status in {429, 503} for wait in waits)
    done = sorted(tally.waits.get(201, []))
    after = await load.closed_loop(seconds)
    return {
        "best rate before and after": [round(best), round(after)],
        "offered": round(TIMES * best),
        "done meanwhile": round(good),
        "share of the mean of both": round(2 * good / (best + after), 2),
        "answers": dict(tally.statuses),
        "unsent": tally.unsent,
        "client late by": round(tally.late, 3),
        "lost": tally.lost,
        "refused within, 99 %": round(refused[int(len(refused) * 0.99)], 3) if refused else None,
        "refused within, all": round(refused[-1], 3) if refused else None,
        "done within, 99 %": round(done[int(len(done) * 0.99)], 3) if done else None,
        "seconds on the processor": round(processor, 2),
        "writes for each of them, without and with overload": [round(alone), round(tally.answered_well / processor)],
        "MiB before and after": [before, during],
    }


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--database-url", help="a new PostgreSQL database; SQLite by default")
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    server_core, own_core = cores()
    with tempfile.TemporaryDirectory() as name:
        url = given.database_url or f"sqlite:///{name}/trellis.db"
        settings = Settings.load({"TRELLIS_DATABASE_URL": url}, None)
        migrate(settings)
        gate = compose(settings)
        key = gate.run(Call("keys.create", TERMINAL, {"name": "Load", "grants": ["*"], "rateLimit": 10_000_000})).value["key"]
        gate.store.close()
        environment = {"TRELLIS_DATABASE_URL": url, "TRELLIS_CONNECTIONS": str(2 * MOST + 200)}
        with Server(["-m", "trellis", "serve", "--port", "0"], Path(name), environment, server_core) as server:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {own_core})
            address = urlsplit(server.address)
            load = Load(str(address.hostname), int(address.port or 0), key)
            found = uvloop.run(measure(load, server, given.seconds))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
