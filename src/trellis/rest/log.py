"""What need not be written before the answer: the request log, the last use of keys, the index for searching."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from trellis.core.gate import Gate
from trellis.core.keys import Keyring
from trellis.settings import Settings
from trellis.store import events, idempotency, keys, lists, requests, snapshots
from trellis.store.engine import Transaction
from trellis.store.requests import Request

log = logging.getLogger(__name__)

_MOST: Final = 50_000  # requests that wait in memory; the oldest fall away when the database cannot be written
_EVERY: Final = 1.0  # seconds between batches
_MANY: Final = 10_000  # requests that wait, from which on the next batch comes sooner
_BATCH: Final = 10_000  # after each, SQLite has to read anew what it kept in its cache
_PURGE_EVERY: Final = 600.0  # seconds
_KEEP_USES: Final = 400  # days for which it is known what a key has used


class Bookkeeper:
    """Writes what need not be written before the answer: requests, last uses, names to search in; and purges old rows."""

    def __init__(self, gate: Gate, keyring: Keyring, settings: Settings) -> None:
        self._gate = gate
        self._keyring = keyring
        self._settings = settings
        self._waiting: deque[Request] = deque(maxlen=_MOST)
        self._task: asyncio.Task[None] | None = None
        self._ending = False
        self._awake = asyncio.Event()  # there is something to do before the next batch is due

    def note(self, request: Request) -> None:
        """Take down an answered request."""
        self._waiting.append(request)
        if len(self._waiting) == _MANY:
            self._awake.set()

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._task = asyncio.create_task(self._keep_writing())

    async def stop(self) -> None:
        """Write what waits, and end."""
        self._ending = True
        self._awake.set()
        if self._task is not None:
            await self._task
        await self.flush()

    async def _keep_writing(self) -> None:
        loop = asyncio.get_running_loop()
        next_purge = loop.time() + _EVERY
        while not self._ending:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), _EVERY)
            if not self._ending:
                self._awake.clear()
            await self.flush()
            await self.catch_up()
            if loop.time() >= next_purge:
                next_purge = loop.time() + _PURGE_EVERY
                await self.purge()

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

    async def catch_up(self) -> None:
        """Work the names that have changed into the index for searching, a batch at a time, as long as the log can wait."""
        store = self._gate.store
        try:
            while not self._awake.is_set() and await self._is_behind():
                if not await asyncio.wrap_future(store.write(lists.update_search_index, quiet=True)):
                    return
                await asyncio.sleep(0.02)
        except Exception:
            log.exception("The index for searching could not be brought up to date.")

    async def _is_behind(self) -> bool:
        def look() -> bool:
            with self._gate.store.reading() as tx:
                return lists.is_search_index_behind(tx)

        return look() if self._gate.store.reads_inline else await asyncio.to_thread(look)

    async def purge(self) -> None:
        """Delete what is older than it is kept, a batch at a time, so that writes come between."""
        for what, purge in self._purges().items():
            count = 0
            try:
                quiet = what != "events"  # the feed tells how far back it reaches
                while gone := await asyncio.wrap_future(self._gate.store.write(purge, quiet=quiet)):
                    count += gone
                    await asyncio.sleep(0.05)
            except Exception:
                log.exception("Old %s could not be deleted.", what)
            if count:
                log.info("Deleted %d old %s.", count, what)

    def _purges(self) -> dict[str, Callable[[Transaction], int]]:
        """Give what deletes a batch of each thing that is not kept for ever, and says how many rows that were."""
        settings = self._settings
        successes, failures, a_day, used, happened, kept = (
            self._gate.ago(timedelta(days=days))
            for days in (
                settings.keep_successes,
                settings.keep_failures,
                1,
                _KEEP_USES,
                settings.keep_events,
                settings.keep_snapshots,
            )
        )
        return {
            "requests": lambda tx: requests.purge(tx, successes_before=successes, failures_before=failures, uses_before=used),
            "idempotent responses": lambda tx: idempotency.purge(tx, a_day),
            "snapshots": lambda tx: snapshots.purge(tx, kept),
            "events": lambda tx: events.purge(tx, happened),
            "changes": lists.trim_journal,
        }
