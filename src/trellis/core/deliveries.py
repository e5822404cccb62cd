"""What was sent to webhooks: the operations that list it, send a test, and send something again."""

import secrets
from typing import Any, Final

from trellis.core.message import TEST, message_of, test_message
from trellis.core.operation import Act, Operation, Outcome
from trellis.core.page import PAGING, PER_PAGE, page_of
from trellis.core.values import Choice, Field, Moment, NodeId
from trellis.core.webhooks import found
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store import deliveries
from trellis.store.deliveries import Attempt, Delivery
from trellis.store.journal import Event
from trellis.store.webhooks import Webhook

_MISSING: Final = {"test": "1T107/A", "redeliver": "1T107/B", "deliveries": "1T107/C", "delivery": "1T107/D"}
_STATES: Final = {
    "waiting": "To be sent, or to be sent again.",
    "delivered": "Answered with success.",
    "failed": "Given up after the last attempt.",
}
_LISTED: Final = (
    *PAGING,
    Field("state", Choice(_STATES), "Only those in this state."),
    Field("since", Moment(), "Only those made at or after this moment."),
    Field("delivery", NodeId(), "Only the one with this id."),
)
_AGAIN: Final = (
    Field("delivery", NodeId(), "The delivery to send again."),
    Field("failedSince", Moment(), "Send again all that failed at or after this moment, or still wait for another attempt."),
)


def operations() -> tuple[Operation, ...]:
    """Give the operations on what was sent. All are for the panel and the terminal."""
    return (
        Operation(
            name="webhooks.deliveries",
            summary="List a webhook's deliveries",
            doc="What was sent to a webhook, the newest first: the request, and each attempt with its answer and its time.",
            run=_list,
            fields=_LISTED,
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
    webhook = found(act, _MISSING["deliveries"])
    act.given.demand()
    page, per_page = act.given.get("page", 1), act.given.get("perPage", PER_PAGE)
    filters: dict[str, Any] = {"webhook_id": webhook.id}
    filters |= {column: act.given.get(name) for name, column in (("state", "state"), ("delivery", "id")) if name in act.given}
    total, listed = deliveries.page(act.tx, filters, act.given.get("since"), per_page, (page - 1) * per_page)
    attempts = deliveries.attempts_of(act.tx, (one.id for one in listed))
    events = deliveries.events_of(act.tx, (one.seq for one in listed if one.seq is not None))
    results = [written(one, attempts.get(one.id, []), events.get(one.seq or 0)) for one in listed]
    return Outcome(page_of(results, total, page, per_page))


def written(delivery: Delivery, attempts: list[Attempt], event: Event | None) -> dict[str, Any]:
    """Write a delivery for a reader. `request` is None where the event is no longer kept."""
    return {
        "id": delivery.id,
        "webhookId": delivery.webhook_id,
        "messageId": delivery.message,
        "type": delivery.type,
        "event": delivery.seq,
        "state": delivery.state,
        "nextAttemptAt": delivery.due_at if delivery.state == "waiting" else None,
        "createdAt": delivery.created_at,
        "request": content(delivery, event),
        "attempts": [attempt._asdict() for attempt in attempts],
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
    after = written(delivery, [], None)
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
