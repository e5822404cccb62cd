"""Nodes: what a kind declares, the operations that every kind has, placement in trees, and records as callers see them."""

from trellis.core.nodes import crud
from trellis.core.nodes.access import access_operation
from trellis.core.nodes.deletion import without_group
from trellis.core.nodes.kind import Derived, NodeKind, Values
from trellis.core.nodes.outline import outline_operations
from trellis.core.nodes.placement import Placement, apply_placement
from trellis.core.nodes.record import serialize_node
from trellis.core.nodes.target import seen
from trellis.core.nodes.tree import makes_cycle, position_on_return
from trellis.core.operation import Operation

__all__ = [
    "Derived",
    "NodeKind",
    "Placement",
    "Values",
    "apply_placement",
    "makes_cycle",
    "operations",
    "position_on_return",
    "seen",
    "serialize_node",
    "without_group",
]


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operations of a kind."""
    outline = outline_operations(kind) if kind.ordered else ()
    return (*crud.operations(kind), *outline, *((access_operation(kind),) if kind.is_group else ()))
