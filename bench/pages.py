"""Measure every page of the panel over a large community: `python -m bench.pages`.

The community has 10,000 forums, 200 groups, 500 keys and a million logged requests, in SQLite. Each kind of page that a link leads
to is opened several times in this process, signed in, with a client that takes about two milliseconds itself. What counts is how
long the processor was busy: the machine may have other things to do.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from bench.forest import forest
from bench.seed import fill
from trellis.admin.app import Panel
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store.migrate import migrate
from trellis.store.requests import Request, append

FORUMS: Final = 10_000
GROUPS: Final = 200
KEYS: Final = 500
DAYS: Final = 14  # over which the requests are spread
BATCH: Final = 5_000
PASSWORD: Final = "seven lanterns over a harbour"  # noqa: S105  # of a database that is deleted
MORE: Final = (
    "/admin/search?text=news",
    "/admin/requests?status=4xx",
    "/admin/requests?key=250",
    "/admin/requests?path=forums",
    "/admin/requests?slower=20",
    "/admin/forums?search=trains",
    "/admin/keys?search=program",
    "/admin/groups/100/access?kind=forums&all=1",
    "/admin/events?resource=groups",
)


def main() -> int:
    """Print a line for each page, the slowest first; the status is 1 if one takes longer than 100 ms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.load({"TRELLIS_DATABASE_URL": f"sqlite:///{folder}/pages.db"}, None)
        migrate(settings)
        gate = compose(settings)
        seed(gate, given.requests)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"The database has {size / 2**20:,.0f} MiB.", flush=True)
        with TestClient(Panel(gate, settings), "http://localhost:8000") as client:
            sign_in(client)
            found = sorted(measure(client, given.times), reverse=True)
        gate.store.close()
    for busy, took, address in found:
        print(f"{busy:7.1f} ms busy {took:7.1f} ms in all  {address}")
    print(f"{len(found)} pages, the slowest {found[0][0]:.0f} ms, half of them under {median(busy for busy, *_ in found):.0f} ms")
    return int(found[0][0] > 100)


def seed(gate: Gate, requests: int) -> None:
    """Fill the database."""

    def run(name: str, /, **raw: Any) -> None:
        gate.run(Call(name, TERMINAL, raw))

    fill(gate, forest("realistic", FORUMS)[0], lambda done: _tell("forums", done))
    for number in range(GROUPS):
        run("groups.create", name=f"Group {number + 1}")
    for number in range(KEYS):
        run("keys.create", name=f"Program {number + 1}", grants=["forums.list", "forums.get", "forums.create"])
    run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)
    for first in range(0, requests, BATCH):
        batch = list(_make(gate, first, min(first + BATCH, requests), requests))
        gate.store.write(partial(append, batch=batch)).result()
        _tell("requests", first + len(batch))


def _make(gate: Gate, first: int, last: int, of: int) -> Iterator[Request]:
    end = datetime.fromisoformat(gate.now())
    for number in range(first, last):
        at = end - timedelta(days=DAYS) * (1 - number / of)
        fails = number % 20 == 0
        yield Request(
            format_timestamp(at),
            "GET",
            f"/api/forums/forums/{number % FORUMS + 1}",
            "forums.get",
            number % KEYS + 1,
            f"192.0.2.{number % 200}",
            404 if fails else 200,
            400 + number % 30_000,
            f"req-{number:012d}",
            "1F294/1" if fails else None,
        )


def sign_in(client: TestClient) -> None:
    """Sign in by the form."""
    page = client.get("/admin/sign-in").text
    token = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    sent = {"login": "mira", "password": PASSWORD, "csrf": token[1] if token else ""}
    if client.post("/admin/sign-in", data=sent, follow_redirects=False).status_code != 303:
        raise SystemExit("It was not possible to sign in.")


def measure(client: TestClient, times: int) -> Iterator[tuple[float, float, str]]:
    """Open one page of each kind so many times; give the milliseconds of the processor, those that it took, and its address."""
    waiting, seen = ["/admin", *MORE], set[str]()
    while waiting:
        address = waiting.pop(0)
        parts = urlsplit(address)
        shape = f"{re.sub(r'[0-9]+', 'N', parts.path)}?{re.sub('=[^&]*', '', parts.query)}"
        if shape in seen and address not in MORE:
            continue
        seen.add(shape)
        response = client.get(address)
        if not response.headers.get("content-type", "").startswith("text/html"):
            continue
        links = re.findall(r'href="(/admin[^"#]*)"', response.text)
        waiting += [link.replace("&amp;", "&") for link in links if "sign-out" not in link and "/static/" not in link]
        took = [_time(client, address) for _ in range(times)]
        yield median(busy for busy, _ in took) * 1000, median(wall for _, wall in took) * 1000, address
        _tell("pages", len(seen))


def _time(client: TestClient, address: str) -> tuple[float, float]:
    busy, wall = time.process_time(), time.perf_counter()
    client.get(address)
    return time.process_time() - busy, time.perf_counter() - wall


def _tell(what: str, done: int) -> None:
    print(f"\r{done:,} {what}   ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
