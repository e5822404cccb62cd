"""Undo of an event: restoring what it deleted or reverting what it changed."""

from trellis.core.undo.change_sets import operations as change_set_operations
from trellis.core.undo.history import history_operations
from trellis.core.undo.restore import fork, operation
