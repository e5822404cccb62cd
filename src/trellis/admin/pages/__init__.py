"""The pages of the panel. A new page is one line in its module's PAGES; a new module is one line here."""

from typing import Final

from trellis.admin.page import Page
from trellis.admin.pages import (
    account,
    administrators,
    deliveries,
    entrance,
    events,
    first_run,
    key,
    keys,
    nodes,
    overview,
    requests,
    undo,
    webhook,
    webhooks,
)
from trellis.core.kind import NodeKind

PAGES: Final[tuple[Page, ...]] = (
    *first_run.PAGES,
    *entrance.PAGES,
    *overview.PAGES,
    *keys.PAGES,
    *key.PAGES,
    *requests.PAGES,
    *webhooks.PAGES,
    *webhook.PAGES,
    *deliveries.PAGES,
    *events.PAGES,
    *undo.PAGES,
    *administrators.PAGES,
    *account.PAGES,
)


def pages_of(kinds: tuple[NodeKind, ...]) -> tuple[Page, ...]:
    """Give every page of a community that holds these kinds of nodes."""
    return PAGES + tuple(page for kind in kinds for page in nodes.pages(kind))
