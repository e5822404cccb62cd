"""The arithmetic of the counted B-tree: how many siblings go into a block, where a block is split, whether blocks are consistent.

Everything here is a pure function of numbers; `rows` reads and writes the blocks, `tree` decides when they change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

CAPACITY: Final = 64  # the most entries of a block before it is split: rows of nodes at level 0, blocks above

# The highest level. `positions.POSITION` joins as many blocks as there are levels below it, and a statement cannot join a
# variable number, so the tree must not grow higher: a block of this level is never split, and may have any number of entries.
HEIGHT: Final = 3


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the tree.

    `parent` is the id of the block that contains this one, 0 for the root. `start` is the number of siblings in the blocks
    before this one in `parent`, `size` the number of siblings in it, at any depth.
    """

    id: int
    level: int
    parent: int
    start: int
    size: int


def fill(capacity: int) -> int:
    """Return how many entries a block gets when a tree is built: three quarters, so that inserts do not split it at once."""
    return max(1, capacity * 3 // 4)


def plan_blocks(count: int, first_id: int, capacity: int) -> list[Block]:
    """Plan the tree for `count` siblings: the leaves in order, then each level above them, the root last.

    The ids are consecutive from `first_id`. 130 siblings and a capacity of 64 make leaves of 48, 48 and 34 and a root.
    """
    per_block = fill(capacity)
    sizes = [per_block] * (count // per_block) + ([count % per_block] if count % per_block else [])
    planned: list[Block] = []
    level = 0
    while True:
        first_parent = first_id + len(sizes)
        group = len(sizes) if len(sizes) <= capacity or level + 1 >= HEIGHT else per_block
        parent_sizes: list[int] = []
        for begin in range(0, len(sizes), group):
            *starts, total = accumulate(sizes[begin : begin + group], initial=0)
            for index, start in enumerate(starts, begin):
                planned.append(Block(first_id + index, level, first_parent + begin // group, start, sizes[index]))
            parent_sizes.append(total)
        first_id, level, sizes = first_parent, level + 1, parent_sizes
        if len(sizes) == 1:
            return [*planned, Block(first_id, level, 0, 0, count)]


def split_point(starts: Sequence[int], *, at_end: bool) -> int:
    """Return how many siblings stay in a block that is split; the others go to a new block after it.

    `starts` lists, for each entry, how many siblings precede it in the block. If siblings are appended one by one (`at_end`),
    only the last entry goes to the new block: a split in the middle would leave every block half empty.
    """
    return starts[-1 if at_end else len(starts) // 2]


def are_consistent(blocks: Sequence[Block], rows_by_leaf: Mapping[int, int]) -> bool:
    """Return whether the blocks of one parent node form a tree whose sizes and starts add up.

    `rows_by_leaf` is the actual number of rows in `nodes` for each leaf block.
    """
    by_id = {block.id: block for block in blocks}
    roots = [block for block in blocks if block.parent == 0]
    if len(roots) != 1 or not 1 <= roots[0].level <= HEIGHT or roots[0].start != 0:
        return False
    if {block.id: block.size for block in blocks if block.level == 0} != rows_by_leaf:
        return False
    entries: dict[int, list[Block]] = {block.id: [] for block in blocks if block.level > 0}
    for block in blocks:
        if block.parent:
            if block.parent not in entries or by_id[block.parent].level != block.level + 1:
                return False
            entries[block.parent].append(block)
    return all(_adds_up(by_id[parent], inside) for parent, inside in entries.items())


def _adds_up(parent: Block, entries: list[Block]) -> bool:
    entries.sort(key=lambda block: block.start)
    starts = list(accumulate((block.size for block in entries), initial=0))
    return [*(block.start for block in entries), parent.size] == starts and all(block.size > 0 for block in entries)
