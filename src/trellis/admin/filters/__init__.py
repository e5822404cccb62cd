"""Filters of lists that are saved under a name: beside the list, and all of them."""

from trellis.admin.filters.pages import PAGES
from trellis.admin.filters.saved import fetch_saved

__all__ = ["PAGES", "fetch_saved"]
