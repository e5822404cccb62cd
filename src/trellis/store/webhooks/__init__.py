"""Webhooks: settings and state (`endpoints`), messages to send (`outbox`), deliveries (`log`) and why some failed (`reasons`)."""

from trellis.store.webhooks import endpoints, log, outbox, reasons
from trellis.store.webhooks.endpoints import Webhook
from trellis.store.webhooks.outbox import Attempt, Delivery
