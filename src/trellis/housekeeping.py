"""What runs beside requests, in each process that serves: the request log is written, names are indexed, old rows are purged.

Processes do this beside each other: what one has done, the next finds done.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol, TypeVar

from trellis.core.admins import FORGOTTEN_AFTER, REMEMBERED_FOR, find_failed_sign_ins
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.proposals import find_overdue
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store import alarms, events, idempotency, keys, lists, mail, moments, proposals, requests, snapshots
from trellis.store.admins import attempts, invitations, sessions
from trellis.store.engine import Transaction
from trellis.store.webhooks import log as deliveries

log = logging.getLogger(__name__)

T = TypeVar("T")

_INTERVAL: Final = 1.0  # seconds between two rounds
_PURGE_INTERVAL: Final = 600.0  # and until the first purge
_DAY: Final = timedelta(days=1)  # more than this since the last purge, and the clock may have jumped
_DOUBT: Final = 3600.0  # seconds for which nothing is purged then
_PAUSE: Final = 0.05  # seconds between two batches, in which other writes come
_USES_KEPT: Final = 400  # days for which it is known what a key has used
_MOST_DELIVERIES: Final = 100_000  # of one webhook
_MOST_PROPOSALS: Final = 1_000  # closed ones of one key


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
        self._log = request_log
        self._purges = Purges(gate, settings)
        self._task: asyncio.Task[None] | None = None
        self._purging: asyncio.Task[None] | None = None  # beside the rounds: it may take minutes, and the request log cannot wait
        self._stopping = False

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, and end. A purge that is under way goes on with the next one."""
        self._stopping = True
        self._log.urgent.set()
        if self._task is not None:
            await self._task
        if self._purging is not None:
            self._purging.cancel()
            await asyncio.wait((self._purging,))
        await self._log.flush()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_purge, next_round = loop.time() + _PURGE_INTERVAL, loop.time() + _INTERVAL
        with suppress(Refused):
            await self._purges.note_beginning()
        while not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_round):
                    await self._log.urgent.wait()
            if not self._stopping:
                self._log.urgent.clear()
            await self._log.flush()
            if loop.time() < next_round:
                continue
            next_round = loop.time() + _INTERVAL
            await self.index_names()
            await self.run_calls("The failed sign-ins could not be told.", find_failed_sign_ins)
            await self.run_calls("Proposals that have expired could not be closed.", find_overdue)
            if loop.time() >= next_purge and (self._purging is None or self._purging.done()):
                next_purge = loop.time() + _PURGE_INTERVAL
                self._purging = asyncio.create_task(self.purge())

    async def index_names(self) -> None:
        """Bring the search index up to date, a batch at a time, for as long as the request log can wait."""
        store = self._gate.store
        try:
            while not self._log.urgent.is_set() and await self._is_index_behind():
                if not await asyncio.wrap_future(store.write(lists.update_search_index, quiet=True)):
                    return
                await asyncio.sleep(_PAUSE)
        except Refused:  # the store has logged why
            return
        except Exception:
            log.exception("The index for searching could not be brought up to date.")

    async def _is_index_behind(self) -> bool:
        def look() -> bool:
            with self._gate.store.reading() as tx:
                return lists.is_search_index_behind(tx)

        return look() if self._gate.store.reads_inline else await asyncio.to_thread(look)

    async def run_calls(self, otherwise: str, find: Callable[[Gate], list[Call]]) -> None:
        """Run what the service does by itself: the events of sign-ins that failed, the end of proposals. `otherwise` is logged."""
        try:
            for call in find(self._gate) if self._gate.store.reads_inline else await asyncio.to_thread(find, self._gate):
                await asyncio.wrap_future(self._gate.submit(call))
        except Refused:  # the store has logged why
            return
        except Exception:
            log.exception("%s", otherwise)

    async def purge(self, *, trusting: bool = False) -> None:
        """Delete what is older than it is kept; `trusting` the clock, however far it has jumped."""
        with suppress(Refused):  # the store has logged why
            await self._purges.run(trusting=trusting)


class Purges:
    """Deletes old rows, unless it is doubtful how late it is.

    A clock that is 100 days ahead would make everything old. So the time of the last purge is kept, and where that is more than a
    day ago, nothing is purged until this process has seen an hour pass by the monotonic clock, or the operator has said so.
    """

    def __init__(self, gate: Gate, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._gate = gate
        self._settings = settings
        self._monotonic = monotonic
        self._doubted_at: float | None = None

    async def note_beginning(self) -> None:
        """Where no purge is known, count from the newest row of a log, or from now. To be run before anything is written."""

        def note(tx: Transaction) -> None:
            if moments.find(tx, moments.PURGE) is None:
                moments.record(tx, moments.PURGE, _milliseconds(moments.find_newest_row(tx) or self._gate.now()))

        await self._write(note)

    async def run(self, *, trusting: bool = False) -> list[str]:
        """Delete what is older than it is kept, a batch at a time, so that other writes come between; `trusting` the clock.

        Returns what could not be deleted, which the log says more of. Raises Refused if the database cannot be written to.
        """
        now = self._gate.now()
        await self.note_beginning()
        if not trusting and not await self._is_clock_trusted(now):
            return []
        failed = []
        for purge in self._list_purges():
            count = 0
            try:
                while gone := await self._write(purge.delete, quiet=purge.quiet):
                    count += gone
                    await asyncio.sleep(_PAUSE)
            except Refused:
                raise
            except Exception:
                log.exception("Old %s could not be deleted.", purge.rows)
                failed.append(purge.rows)
            if count:
                log.info("Deleted %d old %s.", count, purge.rows)
        await self._write(lambda tx: moments.record(tx, moments.PURGE, _milliseconds(now)))
        return failed

    async def _is_clock_trusted(self, now: str) -> bool:
        last = await self._write(lambda tx: moments.find(tx, moments.PURGE))
        if last is None or _milliseconds(now) - last <= _DAY / timedelta(milliseconds=1):
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
        forgotten, remembered = self._gate.ago(FORGOTTEN_AFTER), self._gate.ago(REMEMBERED_FOR)
        return (
            Purge(
                "requests",
                lambda tx: requests.purge(tx, successes_before=successes, failures_before=failures, uses_before=uses),
            ),
            Purge("counts of requests without a key", lambda tx: requests.purge_keyless(tx, failures)),
            Purge("counts of grants' uses", lambda tx: keys.uses.purge(tx, a_day[:10])),
            Purge("idempotent responses", lambda tx: idempotency.purge(tx, a_day)),
            Purge("snapshots", lambda tx: snapshots.purge(tx, kept_snapshots)),
            Purge("change sets", lambda tx: events.purge_change_sets(tx, kept_events)),
            Purge("events", lambda tx: events.purge(tx, kept_events), quiet=False),  # the feed says how far back it reaches
            Purge("alarms", lambda tx: alarms.purge(tx, kept_events)),
            Purge("mail", lambda tx: mail.purge(tx, kept_deliveries)),
            Purge("changes", lists.trim_journal),
            Purge("webhook deliveries", lambda tx: deliveries.purge(tx, kept_deliveries, _MOST_DELIVERIES)),
            Purge("proposals", lambda tx: proposals.purge(tx, kept_events, _MOST_PROPOSALS)),
            Purge("sessions", lambda tx: sessions.purge(tx, now)),
            Purge("invitations", lambda tx: invitations.purge(tx, now)),
            Purge("sign-in attempts", lambda tx: attempts.purge_attempts(tx, forgotten, remembered)),
        )


def _milliseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
