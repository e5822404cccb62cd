"""Nodes: reading, inserting, changing and deleting them."""

from trellis.store.nodes import deleted_ids, outline
from trellis.store.nodes.bounded import MOST_BYTES, Room, TooMuch, read_nodes, weigh, weigh_node
from trellis.store.nodes.inside import find_inside, find_tops, is_inside, leads_inside
from trellis.store.nodes.located import Located, find_with_path
from trellis.store.nodes.rows import (
    AT_ONCE,
    BATCH,
    COLUMNS,
    MOST_LEVELS,
    Node,
    decode_node,
    delete_rows,
    delete_subtree,
    find,
    find_all,
    find_all_ids,
    find_ancestors,
    find_beginning_with,
    find_by_external_ids,
    find_by_ids,
    find_descendants,
    find_existing,
    fold_name,
    insert,
    insert_descendants,
    insert_siblings,
    list_mentioning_group,
    split_into_batches,
    update,
    update_many,
    walk,
)
from trellis.store.nodes.trees import find_below, find_level, find_outline, find_tree, measure_heights, reaches_down
