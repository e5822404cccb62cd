"""Webhooks and their deliveries."""

from trellis.store.webhooks import deliveries, endpoints
from trellis.store.webhooks.deliveries import Attempt, Delivery
from trellis.store.webhooks.endpoints import Webhook

__all__ = ["Attempt", "Delivery", "Webhook", "deliveries", "endpoints"]
