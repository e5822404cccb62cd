"""Delivery to one endpoint: what is due again first, then what has happened since, one message after the other."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from trellis.core.actor import DELIVERY
from trellis.core.events import event_type
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.webhooks import (
    SecretUnavailable,
    build_headers,
    delivery_message,
    derive_secret,
    encode_message,
    is_subscribed,
    message_id,
    webhook_timestamp,
)
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.webhooks import Attempt, Delivery, Webhook, deliveries, endpoints
from trellis.webhooks.schedule import WEEK, delay, rest
from trellis.webhooks.sender import Result, Sender
from trellis.webhooks.signing import signature

log = logging.getLogger(__name__)

BATCH: Final = 32  # events that are in memory for an endpoint
_BATCH_SECONDS: Final = 1.0  # after which what was done is written, and the endpoint read anew
_SLACK: Final = 60  # seconds by which the clocks of two machines may differ
_GONE: Final = 410
_PROBES: Final = 4  # attempts before its time by which one message may hold up those behind it
_EXTRAS: Final = 8  # such attempts of one message in all
_LAG: Final = 1000  # events that nobody wants, before it is written that they were looked at
_NOT_KEPT: Final = "The event is no longer kept, so that it cannot be sent."


@dataclass(slots=True)
class Item:
    """A message to send. `cursor` is how far the events are looked at once it has been tried; None leaves that alone."""

    delivery: Delivery
    event: Event | None
    cursor: int | None


@dataclass(slots=True)
class Plan:
    """What is to be sent next. `scanned` is how far the events were looked at, `more` whether there are some behind."""

    items: list[Item] = field(default_factory=list)
    scanned: int = 0
    more: bool = False


def later(text: str, seconds: float) -> str:
    """Give the moment that lies so many seconds behind another."""
    return format_timestamp(datetime.fromisoformat(text) + timedelta(seconds=seconds))


def resting(webhook: Webhook, now: str) -> bool:
    """Say whether an endpoint is left alone. A rest that began ahead of the clock is over: the clock was set back."""
    if webhook.rests_until is None or webhook.rests_until <= now:
        return False
    return webhook.attempted_at is not None and webhook.attempted_at <= later(now, _SLACK)


def ahead(now: str) -> str:
    """Give the moment behind which an attempt cannot have been made by a clock that goes as this one."""
    return later(now, _SLACK)


def plan(tx: Transaction, webhook: Webhook, scanned: int, now: str, kinds: frozenset[str]) -> Plan:
    """Read what is to be sent to an endpoint next, at most a batch. Only events of these kinds of nodes are ever sent."""
    if due := deliveries.due(tx, webhook.id, now, ahead(now), BATCH):
        return _again(tx, _oldest(tx, webhook, due[0].seq) or due)
    found = deliveries.events_behind(tx, max(webhook.cursor, scanned), BATCH)
    wanted = [event for event in found if event.resource in kinds and is_subscribed(webhook.events, event_type(event))]
    items = [Item(_new(webhook.id, event, now), event, event.seq) for event in wanted]
    if items and (first := _oldest(tx, webhook, items[0].cursor)):
        return _again(tx, first)
    return Plan(items, found[-1].seq if found else max(webhook.cursor, scanned), len(found) == BATCH)


def _again(tx: Transaction, due: list[Delivery]) -> Plan:
    events = deliveries.events_of(tx, (one.seq for one in due if one.seq is not None))
    return Plan([Item(one, events.get(one.seq or 0), None) for one in due])


def _oldest(tx: Transaction, webhook: Webhook, before: int | None) -> list[Delivery]:
    """Give what an endpoint that was left alone is tried with: the oldest of what it missed, so that the order is kept."""
    if webhook.rests_until is None or webhook.failing_since is None or before is None:
        return []
    first = deliveries.oldest(tx, webhook.id, before, webhook.failing_since, _PROBES)
    return [first] if first is not None else []


def _new(webhook: int, event: Event, now: str) -> Delivery:
    return Delivery(
        id=0,
        webhook_id=webhook,
        seq=event.seq,
        message=message_id(event),
        type=event_type(event),
        state="waiting",
        step=0,
        attempts=0,
        due_at=None,
        early=0,
        extras=0,
        created_at=now,
        attempted_at=None,
    )


class Courier:
    """Delivers to one endpoint while its worker `me` holds it, and until `ending` says so."""

    def __init__(self, gate: Gate, sender: Sender, me: str, ending: Callable[[], bool]) -> None:
        self._gate = gate
        self._sender = sender
        self._me = me
        self._ending = ending
        self._kinds = frozenset(kind.name for kind in gate.environment.kinds)

    async def deliver(self, webhook_id: int, scanned: int) -> int:
        """Send everything that is to be sent now; give how far the events were looked at.

        The endpoint is let go of at the end, unless somebody else holds it by then.
        """
        while not self._ending():
            with self._gate.store.reading() as tx:
                webhook = endpoints.find(tx, webhook_id)
                now = self._gate.now()
                if webhook is None or not webhook.enabled or resting(webhook, now):
                    break
                planned = plan(tx, webhook, scanned, now, self._kinds)
            if not await self._carry_out(webhook, planned):
                return scanned
            scanned = max(scanned, webhook.cursor)
            if not planned.items and not planned.more:
                break
        await self._write(lambda tx: endpoints.release(tx, [webhook_id], self._me), quiet=True)
        return scanned

    async def _carry_out(self, webhook: Webhook, planned: Plan) -> bool:
        """Try the messages one after the other and write what came of it. False if somebody else holds the endpoint."""
        round_ = _Round(webhook, webhook.cursor)
        try:
            await self._try_all(round_, planned)
        except asyncio.CancelledError:
            self._gate.store.write(round_.writing(self._me))  # what was sent was sent; nobody waits for this to be written
            raise
        if round_.tried or webhook.cursor - round_.written >= _LAG:
            if not await self._write(round_.writing(self._me)):
                log.warning("Webhook %d was taken over by another process meanwhile.", webhook.id)
                return False
            if round_.gone:
                await self._switch_off(webhook.id, round_.gone)
        return True

    async def _try_all(self, round_: "_Round", planned: Plan) -> None:
        webhook, started = round_.webhook, time.monotonic()
        for item in planned.items:
            at = self._gate.now()
            result = await self._send(webhook, item, at)
            round_.note(item, result, at, self._gate.now())
            if round_.gone or resting(webhook, at) or self._ending() or time.monotonic() - started > _BATCH_SECONDS:
                return
        webhook.cursor = max(webhook.cursor, planned.scanned)

    async def _send(self, webhook: Webhook, item: Item, at: str) -> Result:
        message = delivery_message(item.delivery, item.event)
        if message is None:
            return Result(0, error=_NOT_KEPT)
        key = self._gate.environment.outgoing.key
        try:
            secrets = [derive_secret(webhook.secret, key)]
            if webhook.old_secret is not None and webhook.old_until is not None and webhook.old_until > at:
                secrets.append(derive_secret(webhook.old_secret, key))
        except SecretUnavailable as lost:
            return Result(0, error=str(lost))
        body = encode_message(message)
        signed = signature(item.delivery.message, webhook_timestamp(at), body, secrets)
        return await self._sender.send(webhook.url, build_headers(item.delivery.message, at, signed), body)

    async def _switch_off(self, webhook: int, because: str) -> None:
        call = Call("webhooks.disable", DELIVERY, {"because": because}, webhook)
        await asyncio.wrap_future(self._gate.submit(call))

    async def _write(self, work: Callable[[Transaction], Any], *, quiet: bool = False) -> Any:
        future: Future[Any] = self._gate.store.write(work, quiet=quiet)
        return await asyncio.wrap_future(future)


class _Round:
    """What came of the messages of one batch, until it is written. `written` is how far the events were looked at before."""

    def __init__(self, webhook: Webhook, written: int) -> None:
        self.webhook = webhook
        self.written = written
        self.tried: list[tuple[Delivery, Attempt]] = []
        self.gone: str | None = None
        self._back: str | None = None

    def note(self, item: Item, result: Result, at: str, done: str) -> None:
        """Note what came of a message that was sent `at` one moment and was `done` with at another."""
        webhook, delivery = self.webhook, item.delivery
        _settle(delivery, result, at, done)
        self.tried.append((delivery, Attempt(at, webhook.url, result.duration, result.status, result.error, result.answer)))
        if item.cursor is not None:
            webhook.cursor = item.cursor
        if result.error == _NOT_KEPT:
            return  # the endpoint has nothing to do with it
        webhook.attempted_at = at
        if result.delivered:
            if webhook.rests_until is not None:
                self._back = webhook.failing_since
            webhook.failures, webhook.failing_since, webhook.rests_until = 0, None, None
        else:
            self.gone = _failed(webhook, delivery, result, at, done)

    def writing(self, me: str) -> Callable[[Transaction], bool]:
        """Give what writes this, unless somebody else holds the endpoint by now: then it writes nothing, and gives False."""

        def write(tx: Transaction) -> bool:
            if not endpoints.progress(tx, self.webhook, me):
                return False
            for delivery, attempt in self.tried:
                deliveries.record(tx, delivery, attempt)
            if self._back is not None:
                deliveries.bring_forward(tx, self.webhook.id, self._back, _EXTRAS)
            return True

        return write


def _settle(delivery: Delivery, result: Result, at: str, done: str) -> None:
    """Say what becomes of a delivery after an attempt."""
    set_back = delivery.attempted_at is not None and delivery.attempted_at > ahead(at)
    delivery.attempts += 1
    delivery.attempted_at = at
    if result.delivered or result.error == _NOT_KEPT:
        delivery.state, delivery.due_at, delivery.early = "delivered" if result.delivered else "failed", None, 0
        return
    delivery.early = 0
    if delivery.step and delivery.due_at is not None and delivery.due_at > at and not set_back:
        delivery.extras += result.reached  # it was not its turn: the schedule goes on as it was
        return
    delivery.step += 1
    wait = delay(delivery.step)
    if wait is None:
        delivery.state, delivery.due_at = "failed", None
    else:
        delivery.due_at = later(done, max(wait, result.retry_after))


def _failed(webhook: Webhook, delivery: Delivery, result: Result, at: str, done: str) -> str | None:
    """Note a failure of an endpoint; give the reason to switch it off, if there is one."""
    webhook.failures += 1
    webhook.failing_since = min(webhook.failing_since or at, at)
    if seconds := max(rest(webhook.failures, result.status), result.retry_after):
        until = later(done, seconds)
        soon = delivery.due_at is not None and until < delivery.due_at <= later(until, 1)
        webhook.rests_until = delivery.due_at if soon else until  # so that nothing passes by what is about to be tried again
    else:
        webhook.rests_until = None  # somebody is there
    if result.status == _GONE:
        return "The endpoint answered 410: it is gone."
    failing = datetime.fromisoformat(done) - datetime.fromisoformat(webhook.failing_since)
    return "Every attempt of a week has failed." if failing.total_seconds() >= WEEK else None
