"""Nodes: the declaration of a kind, the operations that every kind has, placement in trees, and records as callers see them."""

from trellis.core.kind import Derived, Leaf, NodeKind, Values
from trellis.core.nodes import copy, crud, external, ordering, outline
from trellis.core.nodes.deletion import delete_leaf_rows, delete_rows
from trellis.core.nodes.edits import Edits
from trellis.core.nodes.external import PUT_EXTERNAL
from trellis.core.nodes.groups import drop_groups, find_naming, remove_group, without_groups
from trellis.core.nodes.placement import Placement, Unfit, apply_placement, count_children_in_the_way, find_parent
from trellis.core.nodes.record import serialize_node, serialize_nodes, serialize_target, slug
from trellis.core.nodes.references import refuse_taken
from trellis.core.nodes.tree import DEEPEST, position_on_return
from trellis.core.operation import Operation

# Each of these modules returns some of the operations of a kind.
_MODULES = (crud, external, copy, ordering, outline)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operations of a kind."""
    return tuple(operation for module in _MODULES for operation in module.operations(kind))
