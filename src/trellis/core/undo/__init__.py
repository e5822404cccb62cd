"""Undo: taking back an event, by bringing back what it deleted or reverting what it changed."""

from trellis.core.undo.history import history_operations
from trellis.core.undo.restore import fork, operation

__all__ = ["fork", "history_operations", "operation"]
