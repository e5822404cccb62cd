"""Webhooks: `endpoints` are their settings and state, `outbox` what is to be sent, `log` what was sent, for people."""

from trellis.store.webhooks import endpoints, log, outbox
from trellis.store.webhooks.endpoints import Webhook
from trellis.store.webhooks.outbox import Attempt, Delivery

__all__ = ["Attempt", "Delivery", "Webhook", "endpoints", "log", "outbox"]
