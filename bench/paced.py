"""Latency at a fixed rate: requests come when they are due, whether those before them were answered or not.

What waits of a stalled server is then seen: each latency counts from when its request was due, not from when it could be sent.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import uvloop

from bench.cases import OURS, Paced
from bench.client import Client, Tally
from bench.over_http import Databases
from bench.process import Server, cores, own_environment, pinned
from bench.wrk import Unusable

HELLO: Final = "hello"
_SECONDS: Final = 2
_CONNECTIONS: Final = 32  # as many more are opened as all are busy
_MOST: Final = 500
_PATIENCE: Final = 20.0  # seconds for the last answers
_WARMING: Final = 0.5  # seconds whose requests do not count
_PATH: Final = "/api/forums/forums"


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of a load, one after the other."""

    host: str
    key: str
    ids: tuple[int, int]
    writes: int
    dice: random.Random

    def next(self) -> tuple[bytes, bool]:
        """Return a request, and whether it reads."""
        path = f"{_PATH}/{self.dice.randint(*self.ids)}"
        head = f"Host: {self.host}\r\nAuthorization: Bearer {self.key}\r\n"
        if self.dice.randrange(100) >= self.writes:
            return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode(), True
        body = f'{{"description": "<p>Changed by the bench, {self.dice.randrange(10**9)}.</p>"}}'
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"POST {path} HTTP/1.1\r\n{head}\r\n{body}".encode(), False


async def send_paced(host: str, port: int, following: Callable[[], tuple[bytes, bool]], rate: float, seconds: float) -> list[float]:
    """Send so many requests a second for so long; return the sorted latencies of those that read, in seconds.

    Raises RuntimeError if one was refused or had no answer.
    """
    tallies = {True: Tally(), False: Tally()}
    free: deque[Client] = deque()
    loop = asyncio.get_running_loop()

    async def connect() -> Client:
        _, client = await loop.create_connection(lambda: Client(tallies[False], free.append), host, port)
        return client

    clients = [await connect() for _ in range(_CONNECTIONS)]
    free.extend(clients)
    waiting: deque[float] = deque()
    sent, began, warm = 0, time.monotonic(), Tally()
    while (passed := time.monotonic() - began) < seconds + _WARMING:
        waiting.extend(began + number / rate for number in range(sent + len(waiting), int(passed * rate)))
        while waiting and free:
            due = waiting.popleft()
            request, reads = following()
            client = free.popleft()
            client.tally = warm if due < began + _WARMING else tallies[reads]
            client.send(request, due)
            sent += 1
        if waiting and len(clients) < _MOST:
            clients.append(await connect())
            free.append(clients[-1])
        await asyncio.sleep(0)  # no longer: who comes a millisecond late measures that millisecond
    until = time.monotonic() + _PATIENCE
    everything = [warm, *tallies.values()]
    while any(sum(one.statuses.values()) + one.lost < one.sent for one in everything) and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    for client in clients:
        client.close()
    statuses = {status for one in everything for status in one.statuses}
    if statuses != {200} or any(sum(one.statuses.values()) < one.sent for one in everything):
        raise RuntimeError(f"answers: {statuses}, sent {[one.sent for one in everything]}, lost {[one.lost for one in everything]}")
    return sorted(tallies[True].waits[200])


def compare(
    case: Paced, databases: Databases, rate: float, repetitions: int, say: Callable[[str], None]
) -> dict[str, list[dict[str, float]]]:
    """Measure trellis and a bare hello by turns: contestant → p50 and p99 of the reads in microseconds, by repetition."""
    with ExitStack() as stack:
        environment = {"TRELLIS_DATABASE_URL": f"sqlite:///{databases.ours}"}
        ours = stack.enter_context(Server(["-m", "trellis", "serve", "--port", "0"], databases.folder, environment, cores()[0]))
        hello = stack.enter_context(Server(["-m", "bench.peers.hello"], databases.folder, {}, cores()[0]))
        found: dict[str, list[dict[str, float]]] = {OURS: [], HELLO: []}
        for number in range(repetitions + 1):
            for name, server in ((OURS, ours), (HELLO, hello)):
                say(f"{case.title} at a fixed rate: {name}, {number} of {repetitions}")
                found[name].append(_measure(case, server.address, databases.key, rate))
        return {name: reps[1:] for name, reps in found.items()}  # the first is for warming up


def _measure(case: Paced, address: str, key: str, rate: float) -> dict[str, float]:
    """Measure in a process of its own, on the core of the load."""
    command = [sys.executable, "-m", "bench.paced", address, key, *map(str, (*case.ids, case.writes, rate, _SECONDS))]
    done = subprocess.run(pinned(command, cores()[1]), capture_output=True, text=True, check=False, env=own_environment())
    if done.returncode:
        raise Unusable(f"{case.title}: {done.stderr.strip()[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Send, and print what was found as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.paced", description=__doc__.splitlines()[0])
    for name, kind in (("address", str), ("key", str), ("first", int), ("last", int), ("writes", int), ("rate", float)):
        parser.add_argument(name, type=kind)
    parser.add_argument("seconds", type=float)
    told = parser.parse_args(given)
    where = urlsplit(told.address)
    stream = Stream(where.netloc, told.key, (told.first, told.last), told.writes, random.Random(4))  # the same each time
    sending = send_paced(str(where.hostname), int(where.port or 0), stream.next, told.rate, told.seconds)
    waits: list[float] = uvloop.run(sending)
    found = {"p50": round(waits[len(waits) // 2] * 1e6, 1), "p99": round(waits[len(waits) * 99 // 100] * 1e6, 1)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
