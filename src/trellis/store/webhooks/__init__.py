"""Webhooks: `endpoints` has their settings and state, `outbox` the messages to send, `log` the search of deliveries."""

from trellis.store.webhooks import endpoints, log, outbox
from trellis.store.webhooks.endpoints import Webhook
from trellis.store.webhooks.outbox import Attempt, Delivery

__all__ = ["Attempt", "Delivery", "Webhook", "endpoints", "log", "outbox"]
