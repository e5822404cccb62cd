"""The pages of the panel, section by section. A new section is one line here, and an entry in the menu, in `rendering.py`."""

from typing import Final

from trellis.admin import (
    admins,
    alarms,
    events,
    factors,
    filters,
    keys,
    many,
    news,
    nodes,
    overview,
    proposals,
    requests,
    search,
    structure,
    undo,
    webhooks,
)
from trellis.admin.page import Page
from trellis.core.catalogue import Catalogue
from trellis.core.nodes import NodeKind

PAGES: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *keys.PAGES,
    *proposals.PAGES,
    *requests.PAGES,
    *webhooks.PAGES,
    *alarms.PAGES,
    *events.PAGES,
    *undo.PAGES,
    *structure.PAGES,
    *admins.PAGES,
    *factors.PAGES,
    *filters.PAGES,
    *news.PAGES,
    *search.PAGES,
)


def pages_of(catalogue: Catalogue, kinds: tuple[NodeKind, ...]) -> tuple[Page, ...]:
    """Return every page of the panel in a community with these kinds of nodes."""
    return PAGES + tuple(page for kind in kinds for pages in (nodes.pages, many.pages) for page in pages(catalogue, kind))
