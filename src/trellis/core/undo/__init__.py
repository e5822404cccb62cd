"""Undo: taking back an event, by bringing back what it deleted or reverting what it changed."""

from trellis.core.undo.restore import find_undoing_events, fork, operation
from trellis.core.undo.undelete import lists_naming

__all__ = ["find_undoing_events", "fork", "lists_naming", "operation"]
