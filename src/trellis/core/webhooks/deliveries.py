"""What was sent to webhooks: the operations that list it, send a test, and send something again."""

import secrets
from typing import Any, Final

from trellis.core.fields import Choice, Field, Integer, Moment, NodeId, Text, invalid_id
from trellis.core.operation import Act, Operation, Outcome
from trellis.core.webhooks.crud import found
from trellis.core.webhooks.message import TEST, headers_of, message_of, test_message
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store.events import Event
from trellis.store.webhooks import Attempt, Delivery, Webhook, deliveries

_MISSING: Final = {"test": "1T107/A", "redeliver": "1T107/B", "get": "1T107/C", "delivery": "1T107/D"}
_HIDDEN: Final = "v1,[hidden]"  # a signature, for readers: it was made with the secret
STATES: Final = {
    "waiting": "To be sent, or to be sent again.",
    "delivered": "Answered with success.",
    "failed": "Given up after the last attempt.",
}
FILTERS: Final = (
    Field("webhook", NodeId(nullable=True), "Only those to the webhook with this id."),
    Field("state", Choice(STATES), "Only those in this state."),
    Field("type", Text(100), "Only those that tell of this, such as forum.created."),
    Field("event", NodeId(nullable=True), "Only those of the event with this number."),
    Field("from", Moment(nullable=True), "Only those made at or after this moment."),
    Field("to", Moment(nullable=True), "Only those made before this moment."),
)
_PAGE: Final = (
    Field("limit", Integer(1, 1000), "How many at most.", default=50),
    Field("before", NodeId(nullable=True), "Where to go on: the `next` of the list before."),
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
    "failedSince", Moment(), "Send again all that failed at or after this moment, or still wait for another attempt."
)
_AGAIN: Final = (Field("delivery", NodeId(), "The delivery to send again."), FAILED_SINCE)


def operations() -> tuple[Operation, ...]:
    """Give the operations on what was sent. All are for the panel and the terminal."""
    return (
        Operation(
            name="deliveries.list",
            summary="Search the deliveries of webhooks",
            doc="What was sent to webhooks, the newest first, with each attempt. A search that would take long ends early and "
            "says from where to go on.",
            run=_list,
            fields=FILTERS + _PAGE,
        ),
        Operation(
            name="deliveries.get",
            summary="Get a delivery",
            doc="One delivery: what was sent, and each attempt with its answer and its time. Never a signature.",
            run=_get,
            has_target=True,
        ),
        Operation(
            name="webhooks.test",
            summary="Send a test",
            doc="Sends a message of the type `webhook.test` to a webhook, as soon as delivery gets to it.",
            run=_test,
            writes=True,
            has_target=True,
        ),
        Operation(
            name="webhooks.redeliver",
            summary="Send something again",
            doc="Sends one delivery again, or all that failed since a moment, under their old webhook-id.",
            run=_redeliver,
            fields=_AGAIN,
            writes=True,
            has_target=True,
        ),
    )


def _list(act: Act) -> Outcome:
    given = act.given
    given.demand()
    filters: dict[str, Any] = {ours: given.get(name) for name, ours in _COLUMNS.items() if given.get(name)}
    result = deliveries.search(act.tx, filters, given.get("limit", 50), given.get("before"))
    attempts = deliveries.attempts_of(act.tx, (one.id for one in result.found), answers=False)
    results = [written(one) | {"attempts": [_told(a) for a in attempts.get(one.id, [])]} for one in result.found]
    return Outcome({"results": results, "next": result.next, "complete": result.patient})


def _told(attempt: Attempt) -> dict[str, Any]:
    return {name: value for name, value in attempt._asdict().items() if name != "answer"}


def _get(act: Act) -> Outcome:
    act.given.demand()
    delivery = deliveries.find(act.tx, act.call.target or 0)
    if delivery is None:
        raise invalid_id("delivery", act.call.target, _MISSING["get"])
    attempts = deliveries.attempts_of(act.tx, (delivery.id,)).get(delivery.id, [])
    events = deliveries.events_of(act.tx, () if delivery.seq is None else (delivery.seq,))
    more = {
        "headers": headers_of(delivery.message, attempts[-1].at, _HIDDEN) if attempts else None,
        "request": content(delivery, events.get(delivery.seq or 0)),
        "attempts": [attempt._asdict() for attempt in attempts],
    }
    return Outcome(written(delivery) | more)


def written(delivery: Delivery) -> dict[str, Any]:
    """Write a delivery for a reader, without what was sent and what was answered."""
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


def content(delivery: Delivery, event: Event | None) -> dict[str, Any] | None:
    """Give the message of a delivery; None where its event is no longer kept."""
    if delivery.seq is None:
        return test_message(delivery.webhook_id, delivery.created_at)
    return None if event is None else message_of(event)


def _switched_on(act: Act, code: str) -> Webhook:
    webhook = found(act, code)
    if not webhook.enabled:
        raise Refused("WEBHOOK_OFF", "The webhook is switched off: nothing is sent to it. Switch it on first.")
    return webhook


def _test(act: Act) -> Outcome:
    webhook = _switched_on(act, _MISSING["test"])
    act.given.demand()
    delivery = Delivery(
        id=0,
        webhook_id=webhook.id,
        seq=None,
        message=f"msg_{secrets.token_hex(16)}",
        type=TEST,
        state="waiting",
        step=0,
        attempts=0,
        due_at=act.now,
        early=0,
        extras=0,
        created_at=act.now,
        attempted_at=None,
    )
    delivery.id = deliveries.insert(act.tx, delivery)
    after = written(delivery)
    return Outcome(after, webhook.id, after=after)


def _redeliver(act: Act) -> Outcome:
    webhook = _switched_on(act, _MISSING["redeliver"])
    act.given.demand()
    one, since = act.given.get("delivery"), act.given.get("failedSince")
    if (one is None) == (since is None):
        detail = "delivery or failedSince is needed, one of the two."
        raise refuse_faults((Fault("delivery", "MISSING_VALUE", detail),))
    if one is not None:
        count = deliveries.redeliver(act.tx, deliveries.the_one(webhook.id, one), act.now)
        if not count:
            raise Refused("INVALID_ID", f"This webhook has no delivery with the id {one}.", code=_MISSING["delivery"])
    else:
        count = deliveries.redeliver(act.tx, deliveries.failed_since(webhook.id, since), act.now)
    result = {"count": count, "delivery": one, "failedSince": since}
    return Outcome(result, webhook.id, after=result, happened=count > 0)
