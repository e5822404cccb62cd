"""The message about an event. It has the same bytes and the same id however often it is sent."""

from datetime import datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final

from trellis.core.events import serialize_event
from trellis.store.events import Event

TEST: Final = "webhook.test"
MESSAGE_HEADERS: Final = MappingProxyType(
    {
        "webhook-id": "The id of the message, which stays the same however often it is sent.",
        "webhook-timestamp": "When this attempt was made, as a Unix timestamp in seconds.",
        "webhook-signature": "Signatures of id, timestamp and body, as Standard Webhooks defines them; one for each valid secret.",
    }
)


def message_id(event: Event) -> str:
    """Return an event's webhook-id, which stays unique even if a restored backup uses event numbers again."""
    identity = f"{event.seq} {event.at} {event.operation} {event.resource_id} {event.request_id}"
    return "msg_" + blake2b(identity.encode(), digest_size=16).hexdigest()


def alarm_message_id(event: Event) -> str:
    """Return the webhook-id of the alarm that an event raises, which differs from that of the event itself."""
    return "msg_" + blake2b(f"alarm {message_id(event)}".encode(), digest_size=16).hexdigest()


def build_message(event: Event) -> dict[str, Any]:
    """Return the message about an event, in the form of Standard Webhooks: type, timestamp and data."""
    data = serialize_event(event)
    return {"type": data.pop("type"), "timestamp": data.pop("at"), "data": data}


def build_test_message(webhook: int, at: str) -> dict[str, Any]:
    """Return a test message."""
    return {"type": TEST, "timestamp": at, "data": {"webhookId": webhook, "note": "This is a test. Nothing has happened."}}


def webhook_timestamp(at: str) -> int:
    """Return the time of an attempt as its webhook-timestamp: a Unix timestamp in seconds."""
    return int(datetime.fromisoformat(at).timestamp())


def build_headers(message: str, at: str, signature: str) -> dict[str, str]:
    """Return the headers of an attempt, as Standard Webhooks defines them."""
    return dict(zip(MESSAGE_HEADERS, (message, str(webhook_timestamp(at)), signature), strict=True))
