"""Webhooks and their deliveries."""

from typing import Final

from trellis.admin.page import Page
from trellis.admin.webhooks import deliveries, index, webhook

PAGES: Final[tuple[Page, ...]] = (*index.PAGES, *webhook.PAGES, *deliveries.PAGES)
