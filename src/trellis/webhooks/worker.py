"""The worker: finds the endpoints for which there is something to send, and has a courier deliver to each.

Several workers, in as many processes, share the work. Each endpoint is held by one of them at a time. The holder lets a
number in the endpoint's row grow, and whoever sees the same number for so many seconds by a clock of its own that nobody can
set takes the endpoint over; the holder stops by itself before that. So it does not matter what the clocks on the wall say.
"""

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from trellis.core.gate import Gate
from trellis.store.engine import Transaction
from trellis.store.webhooks import Webhook, deliveries, endpoints
from trellis.webhooks.courier import Courier, ahead, plan, resting
from trellis.webhooks.guard import Guard
from trellis.webhooks.sender import Sender

log = logging.getLogger(__name__)

LEASE: Final = 15.0  # seconds after which a worker that gives no sign is taken for dead
_LOOK_EVERY: Final = 0.5
_GRACE: Final = 3.0  # seconds for what is under way when the worker ends
_PURGE_EVERY: Final = 600.0
_MOST_KEPT: Final = 100_000  # deliveries of one webhook in the log
_LAG: Final = 1000
_SCANS: Final = 50  # batches of events that are looked through for one endpoint before others have their turn


class Worker:
    """Delivers webhooks until it is told to end. `clock` counts seconds and never goes back.

    All workers on one database must have the same `lease`.
    """

    def __init__(
        self,
        gate: Gate,
        sender: Sender | None = None,
        clock: Callable[[], float] = time.monotonic,
        lease: float = LEASE,
    ) -> None:
        self._gate = gate
        self._sender = sender or Sender(Guard(gate.environment.outgoing.allowed))
        self._clock = clock
        self._lease = lease
        self._beat_every = lease / 4
        self._me = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._kinds = frozenset(kind.name for kind in gate.environment.kinds)
        self._couriers: dict[int, asyncio.Task[None]] = {}
        self._scanned: dict[int, int] = {}
        self._seen: dict[int, tuple[tuple[str, int], float]] = {}
        self._beat_at = 0.0
        self._ending = False
        self._nudge = asyncio.Event()

    # --- the life of a worker -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Deliver until `stop` is called."""
        beating = asyncio.create_task(self._keep_beating())
        purging = asyncio.create_task(self._keep_purging())
        try:
            while not self._ending:
                self._nudge.clear()
                try:
                    await self.look()
                except Exception:
                    log.exception("Webhooks could not be looked at.")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._nudge.wait(), _LOOK_EVERY)
        finally:
            await self._end()
            for task in (beating, purging):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await self.close()

    def stop(self) -> None:
        """End soon: what is under way is finished, or called off after a few seconds. From the worker's own event loop."""
        self._ending = True
        self._nudge.set()

    async def close(self) -> None:
        """Let the connections go."""
        await self._sender.close()

    async def work_off(self) -> None:
        """Send everything that is to be sent by now, and return."""
        while await self.look():
            await self.settled()

    async def settled(self) -> None:
        """Wait until no message is under way."""
        while self._couriers:
            await asyncio.wait(self._couriers.values())
            await asyncio.sleep(0)

    async def _end(self) -> None:
        self._ending = True
        if self._couriers:
            await asyncio.wait(self._couriers.values(), timeout=_GRACE)
        held = list(self._couriers)
        self._call_off()
        await self.settled()
        with suppress(Exception):
            await self._write(lambda tx: endpoints.release(tx, held, self._me))

    def _call_off(self) -> None:
        for task in self._couriers.values():
            task.cancel()

    # --- looking for work -----------------------------------------------------------------------------------------

    async def look(self) -> int:
        """Start a courier for each endpoint that has something to send and that nobody else holds; give their number."""
        started = 0
        for webhook in self._with_work():
            left = self._left(webhook)
            if webhook.owner in {None, self._me} or left is not None:
                self._start(webhook, left)
                started += 1
            await asyncio.sleep(0)
        return started

    def _with_work(self) -> list[Webhook]:
        now = self._gate.now()
        with self._gate.store.reading() as tx:
            listed = endpoints.enabled(tx)
            if not listed:
                self._seen.clear()
                return []
            due = deliveries.with_due(tx, now, ahead(now))
            last = endpoints.last_event(tx)
            self._observe(listed)
            free = (one for one in listed if one.id not in self._couriers and not resting(one, now))
            return [one for one in free if one.owner == self._me or one.id in due or self._behind(tx, one, last, now)]

    def _behind(self, tx: Transaction, webhook: Webhook, last: int, now: str) -> bool:
        """Say whether there are events that an endpoint wants. Those that it does not want are passed over, in memory."""
        for _ in range(_SCANS):
            scanned = max(webhook.cursor, self._scanned.get(webhook.id, 0))
            if scanned >= last:
                break
            planned = plan(tx, webhook, scanned, now, self._kinds)
            if planned.items:
                return True
            self._scanned[webhook.id] = planned.scanned
        return self._scanned.get(webhook.id, 0) - webhook.cursor >= _LAG

    def _observe(self, listed: list[Webhook]) -> None:
        """Note since when each holder has given no sign, by this worker's own clock."""
        at, seen = self._clock(), self._seen
        self._seen = {}
        for webhook in listed:
            if webhook.owner is not None:
                sign = (webhook.owner, webhook.beat)
                known = seen.get(webhook.id)
                self._seen[webhook.id] = known if known is not None and known[0] == sign else (sign, at)

    def _left(self, webhook: Webhook) -> tuple[str, int] | None:
        """Give the holder of an endpoint and its last sign, if that is long ago."""
        sign, since = self._seen.get(webhook.id, (None, 0.0))
        return sign if sign is not None and sign[0] != self._me and self._clock() - since >= self._lease else None

    # --- couriers and their lease ---------------------------------------------------------------------------------

    def _start(self, webhook: Webhook, left: tuple[str, int] | None) -> None:
        if not self._couriers:
            self._beat_at = self._clock()  # taking an endpoint is a sign of life
        task = asyncio.create_task(self._deliver(webhook, left))
        self._couriers[webhook.id] = task
        task.add_done_callback(lambda _: self._done(webhook.id))

    def _done(self, webhook: int) -> None:
        self._couriers.pop(webhook, None)
        self._nudge.set()

    async def _deliver(self, webhook: Webhook, left: tuple[str, int] | None) -> None:
        courier = Courier(self._gate, self._sender, self._me, lambda: self._ending)
        try:
            mine = webhook.owner == self._me
            if mine or await self._write(lambda tx: endpoints.claim(tx, webhook.id, self._me, left)):
                scanned = max(webhook.cursor, self._scanned.get(webhook.id, 0))
                self._scanned[webhook.id] = await courier.deliver(webhook.id, scanned)
        except Exception:
            log.exception("Webhook %d could not be delivered to; it is tried again.", webhook.id)
            await asyncio.sleep(_LOOK_EVERY)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._beat_every / 4)
            await self.beat()

    async def beat(self) -> None:
        """Give a sign of life if it is time; call everything off if it was too late for that."""
        at = self._clock()
        if self._couriers and at - self._beat_at >= self._beat_every:
            try:
                await asyncio.wait_for(self._write(lambda tx: endpoints.keep(tx, self._me)), self._beat_every)
                self._beat_at = at
            except Exception as error:  # noqa: BLE001  # whatever it was: without a sign of life others take over
                log.warning("The hold on webhooks could not be renewed: %s", str(error) or type(error).__name__)
        if self._couriers and self._clock() - self._beat_at >= self._lease - self._beat_every / 4:
            log.warning("The hold on webhooks was lost; what was under way is called off.")
            self._call_off()

    async def _write(self, work: Callable[[Transaction], Any]) -> Any:
        return await asyncio.wrap_future(self._gate.store.write(work, quiet=True))

    # --- the log --------------------------------------------------------------------------------------------------

    async def _keep_purging(self) -> None:
        while True:
            await asyncio.sleep(_PURGE_EVERY)
            await self.purge()

    async def purge(self) -> None:
        """Delete what the log of deliveries no longer keeps, a batch at a time, so that other writes come between."""
        before = self._gate.ago(timedelta(days=self._gate.store.settings.keep_deliveries))
        try:
            while await self._write(lambda tx: deliveries.purge(tx, before, _MOST_KEPT)):  # noqa: ASYNC110  # a rest, not a wait
                await asyncio.sleep(0.05)
        except Exception:
            log.exception("Old webhook deliveries could not be deleted.")
