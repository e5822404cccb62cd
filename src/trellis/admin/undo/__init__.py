"""Undo of one event or of many: a preview, or why it cannot be undone; and then the undo itself."""

from typing import Final

from trellis.admin.page import Page
from trellis.admin.undo import change_sets, pages

PAGES: Final[tuple[Page, ...]] = (*pages.PAGES, *change_sets.PAGES)
