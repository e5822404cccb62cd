"""Saved filters of lists: those of a list, beside it, and the page with all of them."""

from trellis.admin.filters.pages import PAGES
from trellis.admin.filters.saved import fetch_saved

__all__ = ["PAGES", "fetch_saved"]
