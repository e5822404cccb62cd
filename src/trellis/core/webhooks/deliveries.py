"""The operations on deliveries: search and get them, send a test, and resend."""

import secrets
from typing import Any, Final

from trellis.core.alarms import build_alarm_message
from trellis.core.fields import Choice, Field, Integer, NodeId, Text, Timestamp, require_found
from trellis.core.operation import Context, Operation, Outcome, targeted_write
from trellis.core.subscriptions import is_alarm
from trellis.core.webhooks.crud import find_webhook
from trellis.core.webhooks.message import TEST, build_headers, build_message, build_test_message
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store import events
from trellis.store.events import Event
from trellis.store.webhooks import Attempt, Delivery, Webhook, endpoints, log, outbox, reasons

_MISSING: Final = {"test": "1T107/A", "redeliver": "1T107/B", "get": "1T107/C", "delivery": "1T107/D"}
_HIDDEN: Final = "v1,[hidden]"  # shown in place of a signature, which was made with the secret
STATES: Final = {
    "waiting": "Waiting for the first or another attempt.",
    "delivered": "The endpoint confirmed it.",
    "failed": "The last attempt failed.",
}
FILTERS: Final = (
    Field("webhook", NodeId(nullable=True), "Only deliveries to the webhook with this id."),
    Field("state", Choice(STATES), "Only deliveries in this state."),
    Field("type", Text(100), "Only deliveries of this type, such as forum.created."),
    Field("event", NodeId(nullable=True), "Only deliveries of the event with this number."),
    Field("from", Timestamp(nullable=True), "Only deliveries created at or after this time."),
    Field("to", Timestamp(nullable=True), "Only deliveries created before this time."),
)
_LIMIT: Final = Field("limit", Integer(1, 1000), "The number of deliveries at most.", default=50)
_PAGE: Final = (
    _LIMIT,
    Field("before", NodeId(nullable=True), "Where to continue: the `next` of the previous list."),
)
_COLUMNS: Final = {
    "webhook": "webhook_id",
    "state": "state",
    "type": "type",
    "event": "seq",
    "from": "since",
    "to": "until",
}
FAILED_SINCE: Final = Field(
    "failedSince", Timestamp(), "Resend all deliveries that failed at or after this time or are still waiting for another attempt."
)
_AGAIN: Final = (Field("delivery", NodeId(), "The delivery to resend."), FAILED_SINCE)


def operations() -> tuple[Operation, ...]:
    """Return the operations on deliveries, all for the panel and the terminal."""
    return (
        Operation(
            name="deliveries.list",
            summary="Search webhook deliveries",
            doc="Returns what was sent to webhooks, newest first, with each attempt. A search that would take too long ends early "
            "and says where to continue.",
            run=_list,
            fields=FILTERS + _PAGE,
        ),
        Operation(
            name="deliveries.get",
            summary="Get a delivery",
            doc="Returns a delivery: the message, and each attempt with its response and its time. Signatures are hidden, and "
            "so is the message about an alarm (`isHidden`) from whoever may not read what it is about.",
            run=_get,
            has_target=True,
        ),
        targeted_write(
            name="webhooks.test",
            summary="Send a test",
            doc="Queues a message of the type `webhook.test` for a webhook.",
            run=_test,
        ),
        targeted_write(
            name="webhooks.redeliver",
            summary="Resend deliveries",
            doc="Resends one delivery, or all that have failed since a given time. They keep their webhook-id.",
            run=_redeliver,
            fields=_AGAIN,
        ),
    )


def _list(context: Context) -> Outcome:
    query = context.input
    filters: dict[str, Any] = {column: query.get(name) for name, column in _COLUMNS.items() if query.get(name)}
    result = log.search(context.tx, filters, query.get(_LIMIT.name, _LIMIT.default), query.get("before"))
    attempts = log.list_attempts(context.tx, (one.id for one in result.found), answers=False)
    results = [
        serialize_delivery(one) | {"attempts": [_without_answer(attempt) for attempt in attempts.get(one.id, [])]}
        for one in result.found
    ]
    return Outcome({"results": results, "next": result.next, "complete": result.complete})


def _without_answer(attempt: Attempt) -> dict[str, Any]:
    return {name: value for name, value in _serialize_attempt(attempt).items() if name != "answer"}


def _serialize_attempt(attempt: Attempt) -> dict[str, Any]:
    return attempt._asdict() | {"error": attempt.error and reasons.REASONS.read(attempt.error)}


def _get(context: Context) -> Outcome:
    target = context.call.target
    delivery = require_found(log.find(context.tx, target or 0), say("delivery"), target, _MISSING["get"])
    attempts = log.list_attempts(context.tx, (delivery.id,)).get(delivery.id, [])
    event = None if delivery.seq is None else events.find(context.tx, delivery.seq)
    shown = event is None or not is_alarm(delivery.type) or context.call.actor.sees(event.resource)
    details = {
        "headers": build_headers(delivery.message, attempts[-1].at, _HIDDEN) if attempts else None,
        "request": delivery_message(delivery, event) if shown else None,
        "isHidden": not shown,
        "attempts": [_serialize_attempt(attempt) for attempt in attempts],
    }
    return Outcome(serialize_delivery(delivery) | details)


def serialize_delivery(delivery: Delivery) -> dict[str, Any]:
    """Serialise a delivery, without its message and the responses."""
    return {
        "id": delivery.id,
        "webhookId": delivery.webhook_id,
        "messageId": delivery.message,
        "type": delivery.type,
        "event": delivery.seq,
        "state": delivery.state,
        "nextAttemptAt": delivery.due_at if delivery.state == "waiting" else None,
        "createdAt": delivery.created_at,
    }


def delivery_message(delivery: Delivery, event: Event | None) -> dict[str, Any] | None:
    """Return the message of a delivery; None if its event has been purged."""
    if delivery.seq is None:
        return build_test_message(delivery.webhook_id, delivery.created_at)
    if event is None:
        return None
    return build_alarm_message(delivery.type, event) if is_alarm(delivery.type) else build_message(event)


def _find_enabled(context: Context, code: str) -> Webhook:
    webhook = find_webhook(context, code)
    if not webhook.enabled:
        raise Refused("WEBHOOK_OFF", say("The webhook is switched off, so nothing is sent to it. Switch it on first."))
    return webhook


def _test(context: Context) -> Outcome:
    webhook = _find_enabled(context, _MISSING["test"])
    message = f"msg_{secrets.token_hex(16)}"
    created_at = outbox.find_creation_time(context.tx, context.at)
    delivery = Delivery(0, webhook.id, None, message, TEST, "waiting", due_at=context.now, created_at=created_at)
    delivery.id = outbox.insert(context.tx, delivery)
    endpoints.end_pause(context.tx, webhook.id, context.now)
    after = serialize_delivery(delivery)
    return Outcome(after, webhook.id, after=after | _describe(webhook))


def _redeliver(context: Context) -> Outcome:
    webhook = _find_enabled(context, _MISSING["redeliver"])
    one, since = context.input.get("delivery"), context.input.get("failedSince")
    if (one is None) == (since is None):
        detail = say("Send either delivery or failedSince.")
        raise refuse_fault("delivery", "MISSING_VALUE", detail)
    count = outbox.restart(context.tx, webhook.id, context.now, delivery=one, failed_since=since)
    if one is not None and not count:
        raise Refused("INVALID_ID", say("This webhook has no delivery with the id {item}.", item=one), code=_MISSING["delivery"])
    if count:
        endpoints.end_pause(context.tx, webhook.id, context.now)
    result = {"count": count, "delivery": one, "failedSince": since}
    return Outcome(result, webhook.id, after=result | _describe(webhook), happened=count > 0)


def _describe(webhook: Webhook) -> dict[str, str]:
    """Return the members that describe the webhook in an event, so that people need not identify it by its number."""
    return {"url": webhook.url, "description": webhook.description}
