"""Webhooks: `endpoints` has settings and state, `outbox` messages to send, `log` deliveries, `reasons` why one was not sent."""

from trellis.store.webhooks import endpoints, log, outbox, reasons
from trellis.store.webhooks.endpoints import Webhook
from trellis.store.webhooks.outbox import Attempt, Delivery

__all__ = ["Attempt", "Delivery", "Webhook", "endpoints", "log", "outbox", "reasons"]
