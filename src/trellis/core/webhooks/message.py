"""The message about an event: the same bytes under the same id, however often it is sent."""

from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from trellis.core.events import serialize_event
from trellis.store.events import Event

TEST: Final = "webhook.test"


def message_id(event: Event) -> str:
    """Give an event's webhook-id: of this event alone, also after a backup was put back and numbers come again."""
    identity = f"{event.seq} {event.at} {event.operation} {event.resource_id} {event.request_id}"
    return "msg_" + blake2b(identity.encode(), digest_size=16).hexdigest()


def build_message(event: Event) -> dict[str, Any]:
    """Write the message about an event, in the form of Standard Webhooks: type, timestamp and data."""
    data = serialize_event(event)
    return {"type": data.pop("type"), "timestamp": data.pop("at"), "data": data}


def build_test_message(webhook: int, at: str) -> dict[str, Any]:
    """Write the message by which an endpoint is tried."""
    return {"type": TEST, "timestamp": at, "data": {"webhookId": webhook, "note": "A test: nothing has happened."}}


def webhook_timestamp(at: str) -> int:
    """Give the time of an attempt as its webhook-timestamp: seconds since 1970."""
    return int(datetime.fromisoformat(at).timestamp())


def build_headers(message: str, at: str, signature: str) -> dict[str, str]:
    """Write what Standard Webhooks puts into the headers of an attempt."""
    return {"webhook-id": message, "webhook-timestamp": str(webhook_timestamp(at)), "webhook-signature": signature}
