"""The order of siblings: a counted B-tree (order-statistic tree) for each parent with many children.

A node's *position* is its index, from 0, among the children of its parent. If it were stored as a plain number, inserting a node in
the middle of a million would change half a million rows. Therefore more than 64 siblings are stored in *blocks*:

    level 1, the root        block 9, size 130
                       ┌─────────────┼─────────────┐
    level 0         block 6       block 7       block 8
                    start 0       start 48      start 96
                    size 48       size 48       size 34

A leaf block (level 0) contains up to 64 rows of `nodes`, a block above it up to 64 blocks. A row stores its *slot*: the leaf
block and its offset in it (`nodes.block`, `nodes.block_offset`). A block stores its size, which is the number of siblings in
it at any depth, and its start, which is how many siblings precede it in its parent block. Adding the offset to the starts on
the path to the root gives the position: block 7, offset 5 is position 48 + 5 = 53. An insert or a delete renumbers the rows
after it in one leaf and the blocks after it on each level: a few dozen rows, however many siblings there are.

Up to 64 siblings need no blocks: `nodes.block` is 0 and `nodes.block_offset` is the position. Blocks that exist are kept until at
most 32 siblings are left. On PostgreSQL, siblings that one transaction changes often get blocks too, however few they are.

The functions below are all that other packages need. Only this package writes `nodes.parent_id`, `nodes.block`,
`nodes.block_offset` and `sibling_blocks`. Code that inserts rows into `nodes` writes the slots that `attach` returned or
`attach_many` yielded; code that inserts many under new parents uses block 0 and offsets 0…n-1 and calls `build_blocks`; code that
deletes a row calls `detach` with its slot. Throughout, `parent` is the id of the parent node, or None for the top level of a kind.
"""

from trellis.store.siblings.moves import (
    arrange,
    attach,
    attach_many,
    build_blocks,
    can_arrange,
    detach,
    detach_many,
    move,
    move_many,
    reorder,
)
from trellis.store.siblings.pages import select_all, select_nodes
from trellis.store.siblings.positions import (
    POSITION,
    count_children,
    count_children_by_parent,
    find_children,
    find_children_by_parent,
    find_places,
    find_position,
    read_range,
)
from trellis.store.siblings.repair import check, find_free_offset, move_to_top_level, repair
from trellis.store.siblings.rows import delete_blocks
from trellis.store.siblings.succession import positions_after_return, positions_on_leaving
from trellis.store.siblings.tree import Slot, find_slot, find_slots
