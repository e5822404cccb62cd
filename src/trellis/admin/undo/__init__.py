"""Undo: what taking back an event would do, or why it cannot be done; and then the act."""

from trellis.admin.undo.pages import PAGES

__all__ = ["PAGES"]
