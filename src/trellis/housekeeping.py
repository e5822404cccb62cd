"""The background work of each serving process: it writes the request log, indexes names, and purges old rows.

Several processes may do this at the same time: what one has done, the others need not do again.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from trellis.core.admins import FORGOTTEN_AFTER, REMEMBERED_AHEAD, REMEMBERED_FOR, find_failed_sign_ins, open_until
from trellis.core.fields import format_timestamp, shift_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.proposals import find_overdue
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store import alarms, events, idempotency, keys, last_runs, lists, mail, proposals, requests, snapshots
from trellis.store.admins import attempts, invitations, sessions
from trellis.store.engine import Transaction
from trellis.store.webhooks import log as deliveries
from trellis.timestamps import MOST_AHEAD

if TYPE_CHECKING:
    from trellis.http.api import RequestLog

log = logging.getLogger(__name__)

T = TypeVar("T")

_INTERVAL: Final = 1.0  # seconds between two rounds
_PURGE_INTERVAL: Final = 600.0  # seconds between two purges, and until the first one
_DOUBT: Final = 3600.0  # seconds for which nothing is purged in that case
_PAUSE: Final = 0.05  # seconds between two batches, for other writes
# The request log is written at most so often, in seconds, and so many times as long as it took it is not written, however many
# requests come in: many requests in one commit cost far less than a few in each of many commits.
_LOG_PAUSE: Final = 0.01
_LOG_PAUSES: Final = 3
_USES_KEPT: Final = 400  # days for which counts of what keys have used are kept
_MOST_DELIVERIES: Final = 100_000  # per webhook
_MOST_PROPOSALS: Final = 1_000  # closed proposals per actor


class Purge(NamedTuple):
    """Rows that are not kept for ever: their name, and a function that deletes a batch of old ones and returns their number.

    `quiet` means that no response to a caller depends on these rows (see Store.write).
    """

    rows: str
    delete: Callable[[Transaction], int]
    quiet: bool = True


class Housekeeping:
    """The background loop of one process. In every round it writes the request log, or earlier if that is `urgent`."""

    def __init__(self, gate: Gate, settings: Settings, request_log: "RequestLog") -> None:
        self._gate = gate
        self._log = request_log
        self._purges = Purges(gate, settings)
        self._task: asyncio.Task[None] | None = None
        self._beside: dict[str, asyncio.Task[None]] = {}  # tasks of their own, by name: the request log cannot wait for minutes
        self._ending = asyncio.Event()

    def start(self) -> None:
        """Start the loop, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what is still to be written, and stop. A running purge or indexing is cancelled; the next one continues it."""
        self._ending.set()
        self._log.urgent.set()
        if self._task is not None:
            await self._task
        for task in self._beside.values():
            task.cancel()
        if self._beside:
            await asyncio.wait(self._beside.values())
        await self._log.flush()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_purge, next_round = loop.time() + _PURGE_INTERVAL, loop.time() + _INTERVAL
        with _log_errors("The first purge could not be noted."):
            await self._purges.note_beginning()
        while not self._ending.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_round):
                    await self._log.urgent.wait()
            if not self._ending.is_set():
                self._log.urgent.clear()
            began = loop.time()
            await self._log.flush()
            if (now := loop.time()) < next_round:
                pause = max(_LOG_PAUSE, _LOG_PAUSES * (now - began))
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(pause, next_round - now)):
                        await self._ending.wait()
                continue
            next_round = loop.time() + _INTERVAL
            self._start_beside("index", self.index_names)
            await self.run_calls("The failed sign-ins could not be told.", find_failed_sign_ins)
            await self.run_calls("Proposals that have expired could not be closed.", find_overdue)
            if loop.time() >= next_purge:
                next_purge = loop.time() + _PURGE_INTERVAL
                self._start_beside("purge", self.purge)

    def _start_beside(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task, unless the one before is still running."""
        if name not in self._beside or self._beside[name].done():
            self._beside[name] = asyncio.create_task(run())

    async def index_names(self) -> None:
        """Bring the search index up to date, a batch at a time."""
        store = self._gate.store
        with _log_errors("The index for searching could not be brought up to date."):
            while await self._is_index_behind():
                if not await asyncio.wrap_future(store.write(lists.update_search_index, quiet=True)):
                    return
                await asyncio.sleep(_PAUSE)

    async def _is_index_behind(self) -> bool:
        def look() -> bool:
            with self._gate.store.reading() as tx:
                return lists.is_search_index_behind(tx)

        return look() if self._gate.store.reads_inline else await asyncio.to_thread(look)

    async def run_calls(self, otherwise: str, find: Callable[[Gate], list[Call]]) -> None:
        """Run the calls that `find` returns, which the service makes by itself, such as reporting failed sign-ins.

        If that fails unexpectedly, the text `otherwise` is logged.
        """
        with _log_errors(otherwise):
            for call in find(self._gate) if self._gate.store.reads_inline else await asyncio.to_thread(find, self._gate):
                await asyncio.wrap_future(self._gate.submit(call))

    async def purge(self) -> None:
        """Delete rows that are older than they are kept."""
        with _log_errors("Old rows could not be deleted."):
            await self._purges.run()


@contextmanager
def _log_errors(failure: str) -> Iterator[None]:
    """Log an error with a sentence, so that the loop goes on."""
    try:
        yield
    except Refused:  # the store has logged why
        pass
    except Exception:
        log.exception("%s", failure)


class Purges:
    """Deletes old rows, unless the clock may be wrong.

    If the clock were 100 days ahead, all rows would seem old; if it were behind, newer than they can be. So the time of the last
    purge is recorded. If it is more than an hour ago or ahead, nothing is purged until an hour has passed in this process by the
    monotonic clock, or until the operator purges by hand.
    """

    def __init__(self, gate: Gate, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._gate = gate
        self._settings = settings
        self._monotonic = monotonic
        self._doubted_at: float | None = None

    async def note_beginning(self) -> None:
        """If no purge is recorded, record one at the time of the newest log row, or now. Call this before anything is written."""

        def note(tx: Transaction) -> None:
            if last_runs.find(tx, last_runs.PURGE) is None:
                last_runs.record(tx, last_runs.PURGE, _milliseconds(last_runs.find_newest_timestamp(tx) or self._gate.now()))

        await self._write(note)

    async def run(self, *, trusting: bool = False, progress: Callable[[int], None] = lambda _done: None) -> list[str]:
        """Delete rows that are older than they are kept, in batches, so that other writes can run between them.

        With `trusting`, the clock is trusted however far it has jumped. `progress` is told how many rows were deleted. Returns the
        names of those that could not be deleted; the reasons are in the log. Raises Refused if the database cannot be written to.
        """
        now = self._gate.now()
        await self.note_beginning()
        if not trusting and not await self._is_clock_trusted(now):
            return []
        failed, total = [], 0
        for purge in self._list_purges(await self._write(deliveries.list_webhooks)):
            count = 0
            try:
                while gone := await self._write(purge.delete, quiet=purge.quiet):
                    count += gone
                    progress(total + count)
                    await asyncio.sleep(_PAUSE)
            except Refused:
                raise
            except Exception:
                log.exception("Old %s could not be deleted.", purge.rows)
                failed.append(purge.rows)
            total += count
            if count:
                log.info("Deleted %d old %s.", count, purge.rows)
        await self._write(lambda tx: last_runs.record(tx, last_runs.PURGE, _milliseconds(now)))
        return failed

    async def _is_clock_trusted(self, now: str) -> bool:
        last = await self._write(lambda tx: last_runs.find(tx, last_runs.PURGE))
        if last is None or abs(_milliseconds(now) - last) <= MOST_AHEAD / timedelta(milliseconds=1):
            self._doubted_at = None
            return True
        if self._doubted_at is None:
            self._doubted_at = self._monotonic()
            log.warning(
                "Nothing is purged for an hour: the last purge was at %s, and this machine's clock says %s. "
                "If it is right, you need do nothing, or run: trellis purge",
                format_timestamp(datetime.fromtimestamp(last / 1000, UTC)),
                now,
            )
        return self._monotonic() - self._doubted_at >= _DOUBT

    async def _write(self, work: Callable[[Transaction], T], *, quiet: bool = True) -> T:
        return await asyncio.wrap_future(self._gate.store.write(work, quiet=quiet))

    def _list_purges(self, webhooks: Sequence[int]) -> tuple[Purge, ...]:
        """Return all rows that are not kept for ever; deliveries beyond the most of a webhook, for each of these webhooks."""
        settings, now = self._settings, self._gate.now()

        def before(days: int) -> str:  # the clock may jump while rows are deleted
            return shift_timestamp(now, timedelta(days=-days))

        successes, failures, kept_events = map(before, (settings.keep_successes, settings.keep_failures, settings.keep_events))
        forgotten, remembered = shift_timestamp(now, -FORGOTTEN_AFTER), shift_timestamp(now, -REMEMBERED_FOR)
        ahead, remembered_ahead = shift_timestamp(now, MOST_AHEAD), shift_timestamp(now, REMEMBERED_AHEAD)
        return (
            Purge(
                "requests",
                lambda tx: requests.purge(tx, successes_before=successes, failures_before=failures, uses_before=before(_USES_KEPT)),
            ),
            Purge("counts of requests without a key", lambda tx: requests.purge_keyless(tx, failures)),
            Purge("counts of grants' uses", lambda tx: keys.uses.purge(tx, before(1)[:10], ahead[:10])),
            Purge("idempotent responses", lambda tx: idempotency.purge(tx, before(1), now, ahead)),
            Purge("snapshots", lambda tx: snapshots.purge(tx, before(settings.keep_snapshots))),
            Purge("change sets", lambda tx: events.purge_change_sets(tx, kept_events)),
            Purge("events", lambda tx: events.purge(tx, kept_events), quiet=False),  # the feed reports how far back it reaches
            Purge("alarms", lambda tx: alarms.purge(tx, kept_events)),
            Purge("mail", lambda tx: mail.purge(tx, before(settings.keep_deliveries))),
            Purge("changes", lists.trim_journal),
            Purge("webhook deliveries", lambda tx: deliveries.purge(tx, before(settings.keep_deliveries))),
            # One webhook at a time: to find what is beyond the most of all of them would keep other writes waiting for seconds.
            *(
                Purge(f"deliveries of webhook {one}", partial(deliveries.purge_webhook, webhook=one, keep=_MOST_DELIVERIES))
                for one in webhooks
            ),
            Purge("proposals", lambda tx: proposals.purge(tx, kept_events, _MOST_PROPOSALS)),
            Purge("sessions", lambda tx: sessions.purge(tx, now, ahead)),
            Purge("invitations", lambda tx: invitations.purge(tx, open_until(now))),
            Purge("sign-in attempts", lambda tx: attempts.purge_attempts(tx, forgotten, remembered, remembered_ahead)),
        )


def _milliseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
