"""Undo: taking back an event, by bringing back what it deleted or reverting what it changed."""

from trellis.core.undo.restore import fork, operation, undone
from trellis.core.undo.undelete import places_of

__all__ = ["fork", "operation", "places_of", "undone"]
