"""Filling the outbox with events from the event log, one row for each subscribed endpoint, and reading the due messages."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from trellis.core.alarms import alarm_type
from trellis.core.events import event_type
from trellis.core.subscriptions import find_alarm_patterns, is_subscribed
from trellis.core.webhooks import alarm_message_id, message_id
from trellis.store import alarms
from trellis.store import events as event_log
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.webhooks import Delivery, Webhook, endpoints, outbox
from trellis.webhooks.retries import MOST_TRIALS, clock_limit

BATCH: Final = 32  # messages in memory for an endpoint; fewer if they are very large
_MOST_BYTES: Final = 2**18  # about what their events take in memory, beyond which no more messages are kept there
_EVENTS_AT_ONCE: Final = 4
FILL: Final = 500  # events processed, and rows written, in one transaction


class DueMessage(NamedTuple):
    """A message that is due: its row, and its event, which is None for a test or if the event has been purged."""

    delivery: Delivery
    event: Event | None


def list_unfilled(tx: Transaction, now: str) -> list[Webhook]:
    """Return the endpoints that have no due messages and still have events to process, those with the fewest events left first.

    An endpoint with due messages gets no more, so the outbox of an endpoint that is down stays small, however long it is down.
    """
    _, last = event_log.find_span(tx)
    with_due = outbox.find_webhooks_with_due(tx, now, clock_limit(now))
    unfilled = (webhook for webhook in endpoints.list_enabled(tx) if webhook.cursor < last and webhook.id not in with_due)
    return sorted(unfilled, key=attrgetter("cursor"), reverse=True)


def fill_outbox(tx: Transaction, resources: frozenset[str], now: str) -> None:
    """Move the next events from the log into the outbox, and advance the cursors of the endpoints past them.

    Only events of these resources are sent; of other events, only the alarms that they have raised. Runs in the writer, so that no
    two processes move the same event.
    """
    left, created_at = FILL, outbox.find_creation_time(tx, now)
    for cursor, group in groupby(list_unfilled(tx, now), attrgetter("cursor")):
        webhooks = list(group)
        events = event_log.list_after(tx, cursor, left)
        raised = _find_alarms(tx, webhooks, events)
        moved, rows = cursor if events else event_log.find_span(tx)[1], 0
        for event in events:
            if rows >= left:
                break
            moved = event.seq
            if event.resource in resources:
                rows += _insert(tx, webhooks, event, event_type(event), message_id(event), now, created_at)
            if (name := raised.get(event.seq)) is not None:
                rows += _insert(tx, webhooks, event, alarm_type(name), alarm_message_id(event), now, created_at)
        endpoints.move_cursors(tx, [webhook.id for webhook in webhooks], moved)
        left -= max(rows, len(events))
        if left <= 0:
            break


def _find_alarms(tx: Transaction, webhooks: Sequence[Webhook], events: Sequence[Event]) -> dict[int, str]:
    """Return the names of the alarms that events have raised, by event number; {} if none of the webhooks subscribes to alarms."""
    if not events or not any(find_alarm_patterns(webhook.events) for webhook in webhooks):
        return {}
    return alarms.find_between(tx, events[0].seq, events[-1].seq)


def _insert(tx: Transaction, webhooks: Sequence[Webhook], event: Event, name: str, message: str, now: str, created_at: str) -> int:
    """Write the rows of one message; return their number."""
    subscribed = [webhook.id for webhook in webhooks if is_subscribed(webhook.events, name)]
    for webhook in subscribed:
        outbox.insert(tx, Delivery(0, webhook, event.seq, message, name, "waiting", due_at=now, created_at=created_at))
    return len(subscribed)


def list_due_messages(tx: Transaction, webhook: Webhook, now: str) -> list[DueMessage]:
    """Read the next messages for an endpoint, at most a batch. More may be due.

    After a pause this is one message: the oldest that has failed since the endpoint began to fail, even if it is not due yet. This
    preserves the order across an outage.
    """
    due = outbox.list_due(tx, webhook.id, now, clock_limit(now), BATCH)
    if due and webhook.paused_until is not None:
        due = [_find_trial(tx, webhook, due[0].seq) or due[0]]
    messages: list[DueMessage] = []
    size = 0
    for first in range(0, len(due), _EVENTS_AT_ONCE):
        some = due[first : first + _EVENTS_AT_ONCE]
        seqs = [delivery.seq for delivery in some if delivery.seq is not None]
        events = {event.seq: event for event in event_log.find_many(tx, seqs)}
        for delivery in some:
            event = events.get(delivery.seq or 0)
            messages.append(DueMessage(delivery, event))
            size += 0 if event is None else event_log.weigh_event(event)
            if size > _MOST_BYTES:
                return messages  # the rest stays due
    return messages


def _find_trial(tx: Transaction, webhook: Webhook, before: int | None) -> Delivery | None:
    if before is None or webhook.failing_since is None:
        return None
    return outbox.find_first_failed(tx, webhook.id, before, webhook.failing_since, MOST_TRIALS)
