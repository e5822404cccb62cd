"""What runs beside requests, in each process that serves: the request log is written, names are indexed, old rows are purged.

Processes do this beside each other: what one has done, the next finds done.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from trellis.core.admins import REMEMBERED_FOR
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.store import events, idempotency, lists, requests, snapshots
from trellis.store.admins import sessions
from trellis.store.engine import Transaction
from trellis.store.webhooks import log as deliveries

log = logging.getLogger(__name__)

_INTERVAL: Final = 1.0  # seconds between two rounds
_PURGE_INTERVAL: Final = 600.0
_PAUSE: Final = 0.05  # seconds between two batches, in which other writes come
_USES_KEPT: Final = 400  # days for which it is known what a key has used
_MOST_DELIVERIES: Final = 100_000  # of one webhook


class Log(Protocol):
    """What is written with every round. `urgent` is set when that should not wait for the next one."""

    urgent: asyncio.Event

    async def flush(self) -> None: ...


class Purge(NamedTuple):
    """Rows that are not kept for ever: what they are, and what deletes a batch of the old ones and returns their number.

    `quiet` says that nothing that a caller was answered depends on them (see Store.write).
    """

    rows: str
    delete: Callable[[Transaction], int]
    quiet: bool = True


class Housekeeping:
    """The loop of one process."""

    def __init__(self, gate: Gate, settings: Settings, request_log: Log) -> None:
        self._gate = gate
        self._settings = settings
        self._log = request_log
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, and end."""
        self._stopping = True
        self._log.urgent.set()
        if self._task is not None:
            await self._task
        await self._log.flush()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_purge = loop.time() + _INTERVAL
        while not self._stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._log.urgent.wait(), _INTERVAL)
            if not self._stopping:
                self._log.urgent.clear()
            await self._log.flush()
            await self.index_names()
            if loop.time() >= next_purge:
                next_purge = loop.time() + _PURGE_INTERVAL
                await self.purge()

    async def index_names(self) -> None:
        """Bring the search index up to date, a batch at a time, for as long as the request log can wait."""
        store = self._gate.store
        try:
            while not self._log.urgent.is_set() and await self._is_index_behind():
                if not await asyncio.wrap_future(store.write(lists.update_search_index, quiet=True)):
                    return
                await asyncio.sleep(_PAUSE)
        except Exception:
            log.exception("The index for searching could not be brought up to date.")

    async def _is_index_behind(self) -> bool:
        def look() -> bool:
            with self._gate.store.reading() as tx:
                return lists.is_search_index_behind(tx)

        return look() if self._gate.store.reads_inline else await asyncio.to_thread(look)

    async def purge(self) -> None:
        """Delete what is older than it is kept, a batch at a time, so that other writes come between."""
        for purge in self._list_purges():
            count = 0
            try:
                while gone := await asyncio.wrap_future(self._gate.store.write(purge.delete, quiet=purge.quiet)):
                    count += gone
                    await asyncio.sleep(_PAUSE)
            except Exception:
                log.exception("Old %s could not be deleted.", purge.rows)
            if count:
                log.info("Deleted %d old %s.", count, purge.rows)

    def _list_purges(self) -> tuple[Purge, ...]:
        """Return everything that is not kept for ever."""
        settings = self._settings
        now = self._gate.now()
        successes, failures, uses, a_day, kept_snapshots, kept_events, kept_deliveries = (
            self._gate.ago(timedelta(days=days))
            for days in (
                settings.keep_successes,
                settings.keep_failures,
                _USES_KEPT,
                1,
                settings.keep_snapshots,
                settings.keep_events,
                settings.keep_deliveries,
            )
        )
        remembered = self._gate.ago(REMEMBERED_FOR)
        return (
            Purge(
                "requests",
                lambda tx: requests.purge(tx, successes_before=successes, failures_before=failures, uses_before=uses),
            ),
            Purge("idempotent responses", lambda tx: idempotency.purge(tx, a_day)),
            Purge("snapshots", lambda tx: snapshots.purge(tx, kept_snapshots)),
            Purge("events", lambda tx: events.purge(tx, kept_events), quiet=False),  # the feed says how far back it reaches
            Purge("changes", lists.trim_journal),
            Purge("webhook deliveries", lambda tx: deliveries.purge(tx, kept_deliveries, _MOST_DELIVERIES)),
            Purge("sessions", lambda tx: sessions.purge(tx, now)),
            Purge("sign-in attempts", lambda tx: sessions.purge_attempts(tx, remembered)),
        )
