"""Nodes: what a kind declares, the operations that every kind has, placement in trees, and records as callers see them."""

from trellis.core.nodes.crud import operations
from trellis.core.nodes.deletion import without
from trellis.core.nodes.kind import Derived, NodeKind, Values
from trellis.core.nodes.placement import Placement, settle
from trellis.core.nodes.record import written
from trellis.core.nodes.target import seen
from trellis.core.nodes.tree import makes_cycle, returning

__all__ = [
    "Derived",
    "NodeKind",
    "Placement",
    "Values",
    "makes_cycle",
    "operations",
    "returning",
    "seen",
    "settle",
    "without",
    "written",
]
