"""Saved filters of lists: those of a list, beside it, and the page with all of them."""

from trellis.admin.filters.listing import fetch_filtered
from trellis.admin.filters.pages import PAGES
