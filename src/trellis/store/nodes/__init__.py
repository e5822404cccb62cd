"""Nodes: reading, inserting, changing and deleting them."""

from trellis.store.nodes import deleted_ids, outline
from trellis.store.nodes.rows import (
    COLUMNS,
    Node,
    delete_subtree,
    descendants,
    every,
    existing,
    find,
    find_with_path,
    insert,
    lines,
    mentioning,
    name_key,
    node_of,
    slices,
    update,
)

__all__ = [
    "COLUMNS",
    "Node",
    "delete_subtree",
    "deleted_ids",
    "descendants",
    "every",
    "existing",
    "find",
    "find_with_path",
    "insert",
    "lines",
    "mentioning",
    "name_key",
    "node_of",
    "outline",
    "slices",
    "update",
]
