"""Who may do what: whether a key or a group may do something, which keys may, and what a group may do, node by node."""

from trellis.core.access import check, view
from trellis.core.access.rights import describe_right
from trellis.core.operation import Operation


def operations() -> tuple[Operation, ...]:
    """Return the operations."""
    return (*check.OPERATIONS, view.OPERATION)
