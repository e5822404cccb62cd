"""Delivery to one endpoint: due messages are sent one at a time, oldest event first."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trellis.core.actor import DELIVERY
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.subscriptions import is_alarm, is_subscribed
from trellis.core.version import encode_json
from trellis.core.webhooks import SecretUnavailable, delivery_message
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Transaction
from trellis.store.webhooks import Attempt, Delivery, Webhook, endpoints, outbox, reasons
from trellis.traces import TRACEPARENT
from trellis.webhooks.outbox import DueMessage, list_due_messages
from trellis.webhooks.retries import MOST_EARLY, AttemptResult, is_paused, update_delivery, update_endpoint
from trellis.webhooks.signing import build_signed_headers

if TYPE_CHECKING:
    from trellis.webhooks.sender import Sender

log = logging.getLogger(__name__)

_TRACEPARENT: Final = TRACEPARENT.decode()
_BATCH_SECONDS: Final = 1.0  # after which the outcomes are written, and the endpoint is read again
_WRITE_AGAIN: Final = 0.5  # seconds until outcomes that could not be written are written again


class EndpointDelivery:
    """Delivers to one endpoint while the worker with this id has leased it, until `is_stopping` returns True."""

    def __init__(self, gate: Gate, sender: "Sender", worker_id: str, is_stopping: Callable[[], bool]) -> None:
        self._gate = gate
        self._sender = sender
        self._worker_id = worker_id
        self._is_stopping = is_stopping

    async def run(self, webhook_id: int) -> None:
        """Send everything that is due. The endpoint is released at the end, unless another worker has leased it by then."""
        while not self._is_stopping() and (found := self._find_due(webhook_id)):
            if not await self._send_batch(*found):
                return
        await self._write(lambda tx: endpoints.release(tx, [webhook_id], self._worker_id))

    def _find_due(self, webhook_id: int) -> tuple[Webhook, list[DueMessage]] | None:
        """Read the endpoint and its due messages; None if there is nothing to send now."""
        now = self._gate.now()
        with self._gate.store.reading() as tx:
            webhook = endpoints.find(tx, webhook_id)
            if webhook is None or not webhook.enabled or is_paused(webhook, now):
                return None
            messages = list_due_messages(tx, webhook, now)
        return (webhook, messages) if messages else None

    async def _send_batch(self, webhook: Webhook, messages: list[DueMessage]) -> bool:
        """Try the messages and record the outcomes. Return False if another worker has leased the endpoint, or it was deleted."""
        results, started = _Results(webhook), time.monotonic()
        try:
            for index, message in enumerate(messages):
                if index and not self._is_as_read(webhook):
                    break
                at = self._gate.now()
                result = await self._attempt(webhook, message, at)
                results.add(message.delivery, result, at, self._gate.now())
                late = time.monotonic() - started > _BATCH_SECONDS
                if results.switch_off_because or is_paused(webhook, at) or late or self._is_stopping():
                    break
        except BaseException:  # the messages before it have been sent
            if self._is_stopping():  # then do not wait
                self._gate.store.write(lambda tx: results.write(tx, self._worker_id))
            else:
                await self._record(results)
            raise
        if not await self._record(results):
            if not results.is_deleted:
                log.warning("Webhook %d has been taken over by another process.", webhook.id)
            return False
        if results.switch_off_because:
            call = Call("webhooks.disable", DELIVERY, {"because": results.switch_off_because}, webhook.id)
            await asyncio.wrap_future(self._gate.submit(call))
        return True

    def _is_as_read(self, webhook: Webhook) -> bool:
        """Return whether the settings of an endpoint are unchanged since it was read. False if it cannot be read."""
        try:
            now = self._gate.store.read_single(lambda tx: endpoints.find(tx, webhook.id))
        except Refused:  # the outcomes so far are written all the same
            return False
        return now is not None and endpoints.has_same_settings(now, webhook)

    async def _record(self, results: "_Results") -> bool:
        """Write the outcomes, and return the result of `_Results.write`.

        Tries again until the database accepts them, since otherwise all messages would be sent again. Cancelling this does not
        withdraw the write, and ends it at once only if the worker is stopping, not if it has lost its leases.
        """
        recording, is_cancelled = asyncio.create_task(self._keep_recording(results)), False
        recording.add_done_callback(lambda task: task.cancelled() or task.exception())  # after cancelling, nobody asks for it
        while not recording.done():
            try:
                await asyncio.wait([recording])
            except asyncio.CancelledError:
                is_cancelled = True
                if self._is_stopping():
                    recording.cancel()
                    raise
        if is_cancelled:
            raise asyncio.CancelledError
        return recording.result()

    async def _keep_recording(self, results: "_Results") -> bool:
        while True:
            try:
                return bool(await asyncio.shield(self._write(lambda tx: results.write(tx, self._worker_id), quiet=False)))
            except Refused:  # the store has logged why
                if self._is_stopping():
                    raise
            await asyncio.sleep(_WRITE_AGAIN)

    async def _attempt(self, webhook: Webhook, message: DueMessage, at: str) -> AttemptResult:
        kind = message.delivery.type
        if is_alarm(kind) and not is_subscribed(webhook.events, kind):  # somebody else may have changed the address since
            return AttemptResult(0, error=say(reasons.NO_SUBSCRIBER), unsendable=True)
        content = delivery_message(message.delivery, message.event)
        if content is None:
            return AttemptResult(0, error=say(reasons.PURGED), unsendable=True)
        body = encode_json(content)
        try:
            headers = build_signed_headers(webhook, message.delivery.message, at, body, self._gate.environment.outgoing.key)
        except SecretUnavailable as reason:
            return AttemptResult(0, error=str(reason), reached=False)
        return await self._send(webhook, message, headers, body)

    async def _send(self, webhook: Webhook, message: DueMessage, headers: dict[str, str], body: bytes) -> AttemptResult:
        """Send a message with the trace of its event. If this process records traces, the attempt is a span of that trace."""
        parent = None if message.event is None else message.event.traceparent
        traces = self._gate.environment.traces
        if traces is None:
            return await self._sender.send(webhook.url, headers if parent is None else headers | {_TRACEPARENT: parent}, body)
        facts = {"trellis.webhook": webhook.id, "trellis.event": message.delivery.seq}
        span = traces.begin("webhook delivery", parent, facts, "client")
        error: str | None = "cancelled"
        status: int | None = None
        try:
            result = await self._sender.send(webhook.url, headers | {_TRACEPARENT: span.traceparent}, body)
            status, error = result.status, None if result.delivered else "not delivered"
            return result
        finally:
            span.end(error, {"http.response.status_code": status})

    async def _write(self, work: Callable[[Transaction], Any], *, quiet: bool = True) -> Any:
        future: Future[Any] = self._gate.store.write(work, quiet=quiet)
        return await asyncio.wrap_future(future)


class _Results:
    """The outcomes of the messages of one batch, until they are written."""

    def __init__(self, webhook: Webhook) -> None:
        self.switch_off_because: str | None = None
        self.is_deleted = False
        self._before = replace(webhook)
        self._webhook = webhook
        self._attempts: list[tuple[Delivery, Attempt, Delivery]] = []
        self._recovered: tuple[str, str] | None = None

    def add(self, delivery: Delivery, result: AttemptResult, at: str, done: str) -> None:
        """Add the outcome of an attempt that began at `at` and ended at `done`."""
        webhook, before = self._webhook, replace(delivery)
        update_delivery(delivery, result, at, done)
        attempt = Attempt(at, webhook.url, result.duration, result.status, result.error, result.answer)
        self._attempts.append((delivery, attempt, before))
        if result.unsendable:
            return  # this says nothing about the endpoint
        if result.delivered and webhook.paused_until is not None and webhook.failing_since is not None:
            self._recovered = (webhook.failing_since, done)
        self.switch_off_because = update_endpoint(webhook, delivery, result, at, done)

    def write(self, tx: Transaction, worker_id: str) -> bool:
        """Write the outcomes. If another worker has leased the endpoint meanwhile, write nothing and return False.

        Messages that failed during an outage that is over become due now, so that they are sent before newer ones. If the address
        of the webhook was changed meanwhile, or its failures were cleared, the outcomes do not change the state of the endpoint.
        """
        webhook, now = self._webhook, endpoints.find(tx, self._webhook.id)
        self.is_deleted = now is None
        if now is not None and _describe_state(now) != _describe_state(self._before):
            webhook, self._recovered, self.switch_off_because = replace(now, attempted_at=webhook.attempted_at), None, None
        if not endpoints.save_progress(tx, webhook, worker_id):
            return False
        for delivery, attempt, before in self._attempts:
            outbox.record_attempt(tx, delivery, attempt, before)
        if self._recovered is not None:
            outbox.bring_forward(tx, self._webhook.id, *self._recovered, MOST_EARLY)
        return True


def _describe_state(webhook: Webhook) -> tuple[object, ...]:
    """Return the state of an endpoint that only an operation changes while a worker has leased it."""
    return webhook.url, webhook.failures, webhook.failing_since, webhook.paused_until
