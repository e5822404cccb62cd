"""Nodes: what a kind declares, the operations that every kind has, placement in trees, and records as callers see them."""

from trellis.core.kind import Derived, NodeKind, Values
from trellis.core.nodes import copy, crud
from trellis.core.nodes.deletion import delete_rows, without_group
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
    "delete_rows",
    "makes_cycle",
    "operations",
    "position_on_return",
    "seen",
    "serialize_node",
    "without_group",
]

# Each gives some operations of a kind.
_MODULES = (crud, copy)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Give the operations of a kind."""
    return tuple(operation for module in _MODULES for operation in module.operations(kind))
