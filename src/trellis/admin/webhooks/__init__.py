"""Webhooks and their deliveries."""

from typing import Final

from trellis.admin.page import Page
from trellis.admin.webhooks import deliveries, index, webhook
from trellis.admin.webhooks.names import fetch_made_webhooks, fetch_webhooks, webhook_name

PAGES: Final[tuple[Page, ...]] = (*index.PAGES, *webhook.PAGES, *deliveries.PAGES)
