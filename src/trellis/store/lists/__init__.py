"""Lists at a million nodes: pages, filters, the search index; result counts and anchors behind them."""

from trellis.store.lists import changes, search
from trellis.store.lists.pages import Query, SortBy, page

__all__ = ["Query", "SortBy", "changes", "page", "search"]
