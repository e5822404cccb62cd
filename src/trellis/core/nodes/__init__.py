"""Nodes: what a kind declares, the operations that every kind has, placement in trees, and records as callers see them."""

from trellis.core.kind import Derived, NodeKind, Values
from trellis.core.nodes.crud import operations
from trellis.core.nodes.deletion import without_group
from trellis.core.nodes.placement import Placement, apply_placement
from trellis.core.nodes.record import serialize_node
from trellis.core.nodes.target import seen
from trellis.core.nodes.tree import makes_cycle, position_on_return

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
