"""The counted B-tree of the children of one parent: inserting into it, removing from it, splitting and merging its blocks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import NodeIdIn, OfRows, Statement, Transaction
from trellis.store.siblings import btree
from trellis.store.siblings.btree import HEIGHT, Block, plan_blocks, split_point
from trellis.store.siblings.positions import KIND, Extent, extent
from trellis.store.siblings.rows import BlockRows, delete_blocks
from trellis.store.tables import nodes

_c = nodes.c
_WORN: Final = 8  # changes of a block, or of siblings without blocks, in one transaction; see `_is_worn` and `_renew`
_ROWS_PER_MOVED: Final = 4  # siblings that may be rewritten for each one that joins or leaves
_NO_END: Final = 2**31 - 1  # more than any block contains


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a row is in the tree: the values of its columns `block` and `block_offset`."""

    block: int
    offset: int


FreeSlots = tuple[list[Slot], int]  # free slots side by side, and the position of the first

_SLOT = Statement(sa.select(_c.block, _c.block_offset).where(KIND, _c.id == bindparam("node")))
_ASSIGN = Statement(
    sa.update(nodes)
    .where(KIND, _c.id == bindparam("node"))
    .values(parent_id=bindparam("to"), block=bindparam("new_block"), block_offset=bindparam("new_offset"))
)
_ASSIGN_MANY = Statement(
    OfRows(
        "UPDATE nodes SET parent_id = given.parent_id, block = given.block, block_offset = given.block_offset, "
        "updated_at = COALESCE(CAST(:at AS TEXT), nodes.updated_at) "
        "FROM {rows} WHERE nodes.kind = given.kind AND nodes.id = given.id",
        {"kind": "TEXT", "id": "BIGINT", "parent_id": "BIGINT", "block": "BIGINT", "block_offset": "BIGINT"},
    )
)


def find_slot(tx: Transaction, kind: str, node: int) -> Slot:
    """Read the slot of a node, which must exist."""
    return Slot(*tx.fetch(_SLOT, kind=kind, node=node)[0])


_SLOTS = Statement(sa.select(_c.id, _c.block, _c.block_offset).where(NodeIdIn(_c.id, "ids")))


def find_slots(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, Slot]:
    """Read the slots of some nodes: id → slot."""
    return {row[0]: Slot(row[1], row[2]) for row in tx.fetch(_SLOTS, kind=kind, ids=tx.id_list(ids))}


def most_rewritten(moved: int, places: int = 1) -> int:
    """Return the largest number of siblings that are all rewritten if `moved` of them join or leave, in `places` places."""
    return places * btree.CAPACITY + moved * _ROWS_PER_MOVED


def assign_many(tx: Transaction, kind: str, places: Mapping[int, tuple[int | None, Slot]], at: str | None = None) -> None:
    """Write to each of some rows a parent and a slot in its tree, and set `updated_at` to `at` unless that is None."""
    rows = [(kind, node, parent, slot.block, slot.offset) for node, (parent, slot) in places.items()]
    tx.execute_rows(_ASSIGN_MANY, rows, at=at)


def _list_slots(planned: Sequence[Block], positions: Iterable[int]) -> list[Slot]:
    """Return the slots at some positions: in the blocks planned for all siblings, or in block 0 if no blocks are planned."""
    if not planned:
        return [Slot(0, position) for position in positions]
    leaf, per_block = planned[0].id, btree.fill(btree.CAPACITY)
    return [Slot(leaf + position // per_block, position % per_block) for position in positions]


class SiblingTree:
    """The children of a parent in one transaction.

    Attaching a row may split blocks, and detaching one may merge them, which changes the slots of other rows: read a slot with
    `find_slot` after the last change, never before it.
    """

    def __init__(self, tx: Transaction, kind: str, parent: int | None) -> None:
        self._tx, self._kind, self._parent = tx, kind, parent
        self._blocks = BlockRows(tx, kind, parent)

    def attach(self, wanted: int | None) -> tuple[Slot, int]:
        """Make room at a position, or at the end (None, or a number beyond it); return the free slot and its position."""
        slots, position = self._attach(extent(self._tx, self._kind, self._parent), wanted, 1)
        return slots[0], position

    def _attach(self, known: Extent, wanted: int | None, most: int) -> FreeSlots:
        """Do what `attach` does for as many rows as the block has room for, at most `most`."""
        position = known.count if wanted is None else min(wanted, known.count)
        if not known.root and (not known.count or (known.count < btree.CAPACITY and not self._is_worn())):
            fitting = min(most, btree.CAPACITY - known.count)
            self._blocks.shift(0, position, known.count, fitting)
            return _list_slots([], range(position, position + fitting)), position
        path = self._blocks.path_to_position(position, known.root or self.build(known.count)[-1].id)
        if path[-1].size >= btree.CAPACITY:
            path = self._blocks.path_to_position(position, self._split(path, at_end=position == known.count))
        path = self._renew(path)
        leaf = path[-1]
        offset, fitting = position - sum(block.start for block in path), min(most, btree.CAPACITY - leaf.size)
        self._blocks.shift(leaf.id, offset, leaf.size, fitting)
        self._blocks.resize_path(path, fitting)
        return [Slot(leaf.id, offset + n) for n in range(fitting)], position

    def make_room(self, wanted: int | None, count: int) -> Iterator[FreeSlots]:
        """Make room for `count` rows at a position or at the end: at once if that is less work than block by block.

        Yields slots for some of the rows at a time, with the position of the first. They must be written before the next are asked
        for.
        """
        known = extent(self._tx, self._kind, self._parent)
        has_blocks = known.root or known.count + count > btree.CAPACITY
        if count > 1 and has_blocks and known.count <= most_rewritten(count):
            first = known.count if wanted is None else min(wanted, known.count)
            yield _list_slots(self.build(known.count + count, first, count), range(first, first + count)), first
            return
        slots, position = self._attach(known, wanted, count)
        yield slots, position
        while (count := count - len(slots)) > 0:
            known = extent(self._tx, self._kind, self._parent)
            slots, position = self._attach(known, position + len(slots), count)
            yield slots, position

    def arrange(self, slots: Sequence[Slot], count: int) -> Sequence[Slot]:
        """Return slots for `count` rows in order, to which all rows must then be assigned; `slots` are their present slots."""
        is_worn = self._is_worn()
        if len(slots) == count and not is_worn:
            return slots
        has_blocks = count > btree.CAPACITY or (is_worn and count > 0)
        planned = plan_blocks(count, self._blocks.next_id(), btree.CAPACITY) if has_blocks else []
        if any(slot.block for slot in slots):
            delete_blocks(self._tx, self._kind, [self._parent or 0])
        self._blocks.add(*planned)
        return _list_slots(planned, range(count))

    def detach(self, slot: Slot) -> None:
        """Close the gap at a slot that a row has left."""
        if not slot.block:
            self._blocks.shift(0, slot.offset + 1, _NO_END, -1)
            return
        path = self._renew(self._blocks.path_to_block(slot.block))
        self._blocks.shift(path[-1].id, slot.offset + 1, path[-1].size, -1)
        self._blocks.resize_path(path, -1)
        # Not flattened at the capacity already: the next insert would build the blocks again.
        if path[0].size == 1 or (path[0].size - 1 <= btree.CAPACITY // 2 and not self._is_worn()):
            self._blocks.flatten()
        else:
            self._merge(path, 1)

    def detach_many(self, slots: Iterable[Slot]) -> None:
        """Close the gaps at slots that rows have left, leaf by leaf: much less work than one by one."""
        gone = Counter(slot.block for slot in slots)
        before = extent(self._tx, self._kind, self._parent)  # the blocks still count the rows that have left
        if before.root and before.count == gone.total():
            self._blocks.flatten()
            return
        self._blocks.renumber(sorted(gone))
        for block in (block for block in gone if block):
            path = self._blocks.path_to_block(block)
            self._blocks.resize_path(path, -gone[block])
            for empty in (one for one in path if one.size == gone[block]):  # now: an empty block has the same start as the next
                self._blocks.delete(empty.id)
        if not (known := extent(self._tx, self._kind, self._parent)).root:
            return
        if known.count <= btree.CAPACITY // 2:
            self._blocks.flatten()
        else:
            for block in gone:
                if path := self._blocks.path_to_block(block):  # otherwise it was empty, or was merged with the one before it
                    self._merge(path, 0)

    def assign(self, node: int, slot: Slot) -> None:
        """Write a slot of this tree, and its parent, to a row."""
        self._tx.execute(_ASSIGN, kind=self._kind, node=node, to=self._parent, new_block=slot.block, new_offset=slot.offset)

    def reorder(self, node: int, old: int, wanted: int | None) -> int:
        """Move a child from position `old` to another one, or to the end (None, or a number beyond it); return the new position.

        Within a leaf block, only the rows between the two positions are renumbered; otherwise the row is attached at its new
        position and detached from the old one.
        """
        known = extent(self._tx, self._kind, self._parent)
        last = known.count - 1
        new = last if wanted is None else min(wanted, last)
        if new == old:
            return new
        if self._is_worn() and not known.root:
            self.build(last + 1)
        slot = find_slot(self._tx, self._kind, node)
        offset = slot.offset + new - old
        path = self._blocks.path_to_block(slot.block) if slot.block and abs(new - old) < btree.CAPACITY else []
        if not slot.block or (path and 0 <= offset < path[-1].size):
            block = self._renew(path[-1:])[0].id if path else 0
            if old < new:
                self._blocks.shift(block, slot.offset + 1, offset + 1, -1)
            else:
                self._blocks.shift(block, offset, slot.offset, 1)
            self.assign(node, Slot(block, offset))
            return new
        target, _ = self.attach(new + 1 if old < new else new)
        slot = find_slot(self._tx, self._kind, node)  # again: attaching may have shifted it, or split its block
        self.assign(node, target)
        self.detach(slot)
        return new

    # --- many changes in one transaction ---
    #
    # Until a transaction ends, PostgreSQL keeps every version of a row that it replaces, and finds all versions under the id of the
    # block that they were in: the thousandth change of a block in a transaction would read thousands of them. Therefore a block
    # that has been changed several times gets another id, under which only the current rows are found; siblings without blocks get
    # blocks for the same reason.

    def _is_worn(self) -> bool:
        """Count a change of these siblings; return whether the transaction has changed them so often that they need blocks."""
        if self._tx.sqlite:
            return False
        self._tx.block_changes[self._kind, self._parent] += 1
        return self._tx.block_changes[self._kind, self._parent] > _WORN

    def _renew(self, path: list[Block]) -> list[Block]:
        """Count a change of the blocks on a path, and give blocks that have been changed often another id; return the path."""
        if self._tx.sqlite:
            return path
        renewed: list[Block] = []
        for block in path:
            current = replace(block, parent=renewed[-1].id) if renewed else block
            self._tx.block_changes[block.id] += 1
            if self._tx.block_changes[block.id] > _WORN:
                current = replace(current, id=self._blocks.next_id())
                self._blocks.rename(block, current.id)
            renewed.append(current)
        return renewed

    # --- the whole tree ---

    def build(self, count: int, first: int = 0, room: int = 0) -> list[Block]:
        """Distribute siblings over new blocks for `count` rows; return the blocks, the root last.

        `room` of the rows, from the position `first` on, are still to be inserted.
        """
        planned = plan_blocks(count, self._blocks.next_id(), btree.CAPACITY)
        self._blocks.distribute(planned[0].id, btree.fill(btree.CAPACITY), first, room)
        self._blocks.add(*planned)
        return planned

    # --- splitting and merging ---

    def _split(self, path: list[Block], *, at_end: bool) -> int:
        """Split the leaf at the end of a path, and each block above that then has one entry too many; return the root's id."""
        for block in reversed(path):
            starts = self._starts(block)
            # A leaf is split when it is full, before a row is attached; a block above, when the split below it has overfilled it.
            if len(starts) < btree.CAPACITY + (block.level > 0) or block.level == HEIGHT:
                break
            stay, new_id, parent = split_point(starts, at_end=at_end), self._blocks.next_id(), block.parent
            if not parent:  # the root is split: add a new root above both halves
                parent, new_id = new_id, new_id + 1
                self._blocks.set_parent(block.id, parent)
                self._blocks.add(Block(parent, block.level + 1, 0, 0, block.size))
            self._blocks.add(Block(new_id, block.level, parent, block.start + stay, block.size - stay))
            self._blocks.transfer(block, new_id, stay, -stay)
            self._blocks.set_size(block.id, stay)
            if not block.parent:
                return parent
        return path[0].id

    def _starts(self, block: Block) -> list[int]:
        """Return, for each entry of a block, how many siblings precede it in the block."""
        return [entry.start for entry in self._blocks.entries(block.id)] if block.level else list(range(block.size))

    def _merge(self, path: list[Block], gone: int) -> None:
        """Merge each block of a path that has few entries left with a neighbour; delete a block without entries.

        `gone` is the number of siblings that were detached since the path was read.
        """
        sizes = [block.size - gone for block in path]
        for depth in range(len(path) - 1, 0, -1):
            block, size = path[depth], sizes[depth]
            entries = len(self._blocks.entries(block.id)) if block.level else size
            if entries > btree.CAPACITY // 4:
                return
            if not entries:
                self._blocks.delete(block.id)
                continue
            neighbours = self._blocks.entries(block.parent)
            index = next(n for n, one in enumerate(neighbours) if one.id == block.id)
            if len(neighbours) == 1:
                continue
            left, right = (neighbours[index - 1], neighbours[index]) if index else (neighbours[0], neighbours[1])
            other = left if index else right
            others = len(self._blocks.entries(other.id)) if other.level else other.size
            if entries + others > btree.fill(btree.CAPACITY):  # not at the capacity: the next insert would split it again
                return
            self._blocks.transfer(right, left.id, 0, left.size)
            self._blocks.set_size(left.id, left.size + right.size)
            self._blocks.delete(right.id)
