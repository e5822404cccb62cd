"""Nodes: reading, inserting, changing and deleting them."""

from trellis.store.nodes import deleted_ids, outline
from trellis.store.nodes.rows import (
    COLUMNS,
    Node,
    decode_node,
    delete_subtree,
    find,
    find_all,
    find_ancestors,
    find_descendants,
    find_existing,
    find_mentioning_group,
    find_with_path,
    fold_name,
    insert,
    split_into_batches,
    update,
)

__all__ = [
    "COLUMNS",
    "Node",
    "decode_node",
    "delete_subtree",
    "deleted_ids",
    "find",
    "find_all",
    "find_ancestors",
    "find_descendants",
    "find_existing",
    "find_mentioning_group",
    "find_with_path",
    "fold_name",
    "insert",
    "outline",
    "split_into_batches",
    "update",
]
