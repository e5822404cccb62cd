"""The request log, and the last use of keys: both wait in memory for a moment and are written in batches."""

import asyncio
import logging
from collections import deque
from typing import Final

from trellis.core.gate import Gate
from trellis.core.keys import Keyring
from trellis.store import keys, requests
from trellis.store.engine import Transaction
from trellis.store.requests import Request

log = logging.getLogger(__name__)

_MOST: Final = 50_000  # requests that wait in memory; the oldest fall away when the database cannot be written
_MANY: Final = 10_000  # requests that wait, from which on they should be written soon
_BATCH: Final = 10_000  # after each, SQLite has to read anew what it kept in its cache


class RequestLog:
    """The answered requests that are still to be written. `urgent` is set when there are many of them."""

    def __init__(self, gate: Gate, keyring: Keyring) -> None:
        self.urgent = asyncio.Event()
        self._gate = gate
        self._keyring = keyring
        self._waiting: deque[Request] = deque(maxlen=_MOST)

    def record(self, request: Request) -> None:
        """Take an answered request into the log."""
        self._waiting.append(request)
        if len(self._waiting) == _MANY:
            self.urgent.set()

    async def flush(self) -> None:
        """Write everything that waits."""
        uses = self._keyring.take_uses()
        while self._waiting or uses:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]

            def write(tx: Transaction, batch: list[Request] = batch, uses: list[tuple[int, str]] = uses) -> None:
                requests.append(tx, batch)
                keys.record_uses(tx, uses)

            try:
                await asyncio.wrap_future(self._gate.store.write(write, quiet=True))
            except Exception:
                log.exception("%d requests could not be written to the request log.", len(batch))
                return
            uses = []
