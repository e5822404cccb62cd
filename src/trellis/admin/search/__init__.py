"""The search of everything: what is found by a text, the pages of the menu, and what can be done."""

from trellis.admin.search.pages import PAGES

__all__ = ["PAGES"]
