"""The worker, which fills the outbox, finds the endpoints with due messages, and delivers to each of them.

Several workers, each in its own process, share the work. Each endpoint is leased by one of them at a time. The owner keeps
increasing a heartbeat, a number in the endpoint's row. A worker that sees the same number for the duration of a lease, by its own
monotonic clock, takes the endpoint over; the owner stops by itself before that. So the time of day does not matter. If the process
of an owner on the same machine has ended, no worker waits for it: a restarted service takes over its own endpoints at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store.engine import Transaction
from trellis.store.webhooks import Webhook, endpoints, outbox
from trellis.webhooks.delivery import EndpointDelivery
from trellis.webhooks.holder import has_ended, name_worker
from trellis.webhooks.outbox import fill_outbox, list_unfilled
from trellis.webhooks.retries import clock_limit, is_paused

if TYPE_CHECKING:
    from trellis.webhooks.sender import Sender

log = logging.getLogger(__name__)

LEASE: Final = 15.0  # seconds after which a worker without a heartbeat is considered dead
_LOOK_EVERY: Final = 0.5
_GRACE: Final = 3.0  # seconds for messages in progress when the worker stops
_FILLS: Final = 20  # the most transactions that fill the outbox before messages are delivered


class DeliveryWorker:
    """Delivers messages to webhooks until it is stopped. `clock` counts seconds and never goes back.

    All workers on one database must have the same `lease`.
    """

    def __init__(
        self,
        gate: Gate,
        sender: "Sender | None" = None,
        clock: Callable[[], float] = time.monotonic,
        lease: float = LEASE,
    ) -> None:
        self._gate = gate
        self._sender = sender
        self._clock = clock
        self._lease = lease
        self._heartbeat_every = lease / 4
        self._heartbeat_at = 0.0
        self._id = name_worker(gate.environment.outgoing.instance)
        self._resources = frozenset(one.resource for one in gate.catalogue.values() if one.sends_events)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lost: set[int] = set()  # those of them whose leases were lost: they send nothing, but write what they have sent
        self._heartbeats: dict[int, tuple[tuple[str, int], float]] = {}
        self._stopping = False
        self._wake = asyncio.Event()

    def _get_sender(self) -> "Sender":
        """Return the sender, which is created when the first message is sent."""
        if self._sender is None:
            # Start-up time: the HTTP client is slow to load, and many services have no webhooks.
            from trellis.webhooks.guard import Guard  # noqa: PLC0415
            from trellis.webhooks.sender import Sender  # noqa: PLC0415

            policy = self._gate.environment.outgoing
            self._sender = Sender(Guard(policy.allowed, hosts=policy.hosts, https_only=policy.https_only))
        return self._sender

    async def run(self) -> None:
        """Deliver until `stop` is called."""
        renewing = asyncio.create_task(self._keep_renewing())
        try:
            while not self._stopping:
                self._wake.clear()
                try:
                    await self.look()
                except Refused:  # the store has logged why
                    pass
                except Exception:
                    log.exception("Looking for due webhooks failed.")
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY):
                        await self._wake.wait()
        finally:
            await self._end()
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            await self.close()

    def stop(self) -> None:
        """Stop soon: messages in progress are finished, or cancelled after a few seconds. Call it in the worker's event loop."""
        self._stopping = True
        self._wake.set()

    async def close(self) -> None:
        """Close the connections to endpoints."""
        if self._sender is not None:
            await self._sender.close()

    async def _end(self) -> None:
        self._stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_GRACE)
        held = list(self._tasks)
        for task in self._tasks.values():
            task.cancel()
        await self.settle()
        with suppress(Exception):
            await self._write(lambda tx: endpoints.release(tx, held, self._id))

    async def settle(self) -> None:
        """Wait until no message is in progress."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())
            await asyncio.sleep(0)

    # --- looking for work -----------------------------------------------------------------------------------------

    async def look(self) -> int:
        """Start delivering to each endpoint that has due messages and no other living owner; return the number of endpoints."""
        await self._fill()
        started = 0
        for webhook in self._find_ready():
            left = self._find_left(webhook)
            if webhook.owner in {None, self._id} or left is not None:
                self._start(webhook, left)
                started += 1
            await asyncio.sleep(0)
        return started

    async def _fill(self) -> None:
        """Fill the outbox from the event log, for endpoints without due messages."""
        for _ in range(_FILLS):
            with self._gate.store.reading() as tx:
                if not list_unfilled(tx, self._gate.now()):
                    return
            await self._write(lambda tx: fill_outbox(tx, self._resources, self._gate.now()))

    def _find_ready(self) -> list[Webhook]:
        now = self._gate.now()
        with self._gate.store.reading() as tx:
            enabled = endpoints.list_enabled(tx)
            with_due = outbox.find_webhooks_with_due(tx, now, clock_limit(now))
        self._note_heartbeats(enabled)
        free = (webhook for webhook in enabled if webhook.id not in self._tasks and not is_paused(webhook, now))
        return [webhook for webhook in free if webhook.owner == self._id or webhook.id in with_due]

    def _note_heartbeats(self, webhooks: list[Webhook]) -> None:
        """Record since when each heartbeat has been the same, by this worker's own clock."""
        at, noted = self._clock(), self._heartbeats
        self._heartbeats = {}
        for webhook in webhooks:
            if webhook.owner is not None:
                heartbeat = (webhook.owner, webhook.heartbeat)
                known = noted.get(webhook.id)
                self._heartbeats[webhook.id] = known if known is not None and known[0] == heartbeat else (heartbeat, at)

    def _find_left(self, webhook: Webhook) -> tuple[str, int] | None:
        """Return the owner of an endpoint and its last heartbeat if the owner is dead; otherwise None.

        An owner is dead if its heartbeat has been the same for the duration of a lease, or if its process has ended.
        """
        heartbeat, since = self._heartbeats.get(webhook.id, (None, 0.0))
        if heartbeat is None or heartbeat[0] == self._id:
            return None
        ended = has_ended(heartbeat[0], self._gate.environment.outgoing.instance)
        return heartbeat if ended or self._clock() - since >= self._lease else None

    # --- endpoints leased by this worker --------------------------------------------------------------------------

    def _start(self, webhook: Webhook, left: tuple[str, int] | None) -> None:
        if not self._sending():
            self._heartbeat_at = self._clock()  # leasing an endpoint counts as a heartbeat
        task = asyncio.create_task(self._deliver(webhook, left))
        self._tasks[webhook.id] = task
        task.add_done_callback(lambda _: self._finish(webhook.id))

    def _finish(self, webhook: int) -> None:
        self._tasks.pop(webhook, None)
        self._lost.discard(webhook)
        self._wake.set()

    async def _deliver(self, webhook: Webhook, left: tuple[str, int] | None) -> None:
        try:
            if await self._write(lambda tx: self._hold(tx, webhook, left)):
                await EndpointDelivery(self._gate, self._get_sender(), self._id, lambda: self._stopping).run(webhook.id)
        except Refused:  # the store has logged why
            await asyncio.sleep(_LOOK_EVERY)
        except Exception:
            log.exception("Delivery to webhook %d failed; it will be tried again.", webhook.id)
            await asyncio.sleep(_LOOK_EVERY)

    def _hold(self, tx: Transaction, webhook: Webhook, left: tuple[str, int] | None) -> bool:
        """Lease an endpoint, or renew the lease if this worker has it. Without a successful write, nothing is sent."""
        if webhook.owner == self._id:
            return endpoints.is_held(tx, webhook.id, self._id) and endpoints.renew(tx, self._id) > 0
        return endpoints.claim(tx, webhook.id, self._id, left)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_every / 4)
            await self.renew_lease()

    async def renew_lease(self) -> None:
        """Write a heartbeat if it is time; cancel all messages in progress if it is too late."""
        at = self._clock()
        if self._sending() and at - self._heartbeat_at >= self._heartbeat_every:
            try:
                async with asyncio.timeout(self._heartbeat_every):
                    await self._write(lambda tx: endpoints.renew(tx, self._id))
                self._heartbeat_at = at
            except Exception as error:  # noqa: BLE001  # whatever the error, others take over without a heartbeat
                log.warning("The lease on webhooks could not be renewed: %s", str(error) or type(error).__name__)
        if (sending := self._sending()) and self._clock() - self._heartbeat_at >= self._lease - self._heartbeat_every / 4:
            log.warning("The lease on webhooks was lost; messages in progress are cancelled.")
            self._lost |= sending
            for webhook in sending:
                self._tasks[webhook].cancel()

    def _sending(self) -> set[int]:
        """Return the webhooks to which messages may be sent."""
        return self._tasks.keys() - self._lost  # `Task.cancelling` does not tell: libraries cancel tasks for their own ends, too

    async def _write(self, work: Callable[[Transaction], Any]) -> Any:
        return await asyncio.wrap_future(self._gate.store.write(work, quiet=True))
