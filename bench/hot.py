"""One read of the API again and again, answered from memory: in process, without a server and without a network."""

import asyncio
import time
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from bench.growth import Work
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.http.api import Service
from trellis.rest.app import Rest
from trellis.settings import Settings

_READS: Final = 10_000
_PATIENCE: Final = 10.0  # seconds
HOT: Final = 4711
_PATH: Final = f"/api/forums/forums/{HOT}"


def read_with_keys(gate: Gate, *settings: Mapping[str, Any]) -> tuple[Work, ...]:
    """Return for each settings of a key what reads one forum many times with such a key."""
    rest, runner = _serve(gate), asyncio.Runner()
    return tuple(_read(rest, runner, make_key(gate, one)) for one in settings)


def read_with_settings(gate: Gate, *settings: Mapping[str, str]) -> tuple[Work, ...]:
    """Return for each settings of the service what reads one forum many times from such a service."""
    runner, key = asyncio.Runner(), make_key(gate, {})
    return tuple(_read(_serve(gate, **one), runner, key) for one in settings)


def _serve(gate: Gate, **settings: str) -> Rest:
    gate.store.listen()
    end = time.monotonic() + _PATIENCE
    while gate.store.data_version() is None:
        if time.monotonic() > end:
            raise TimeoutError("the database is not followed, so nothing would be answered from memory")
        time.sleep(0.01)
    given = {"TRELLIS_RATE_LIMIT": "0", "TRELLIS_PUBLIC_URL": "http://bench.example", **settings}
    return Rest(Service(gate, Settings.load(given, None)))


def make_key(gate: Gate, settings: Mapping[str, Any]) -> str:
    """Make a key with all grants and these settings."""
    return str(gate.run(Call("keys.create", TERMINAL, {"name": "Bench", "grants": ["*"], **settings})).value["key"])


def _read(rest: Rest, runner: asyncio.Runner, key: str) -> Work:
    headers = [(b"host", b"bench.example"), (b"authorization", f"Bearer {key}".encode())]
    scope = {"method": "GET", "path": _PATH, "raw_path": _PATH.encode(), "query_string": b"", "headers": headers}
    statuses: list[int] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if "status" in message:
            statuses.append(message["status"])

    async def read_all() -> None:
        statuses.clear()
        for _ in range(_READS):
            await rest(scope, receive, send)
        if statuses != [200] * _READS:
            raise LookupError(f"a read was answered {set(statuses)}")

    return lambda: runner.run(read_all())
