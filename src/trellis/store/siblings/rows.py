"""The rows of the tree: statements that read and write `sibling_blocks`, and the slots of the siblings in `nodes`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.column_types import NUMBER
from trellis.store.engine import IdIn, Statement, Transaction
from trellis.store.siblings.btree import HEIGHT, Block
from trellis.store.siblings.positions import POSITION, ZERO, is_child, parent_param
from trellis.store.tables import node_changes, nodes, sibling_blocks

_c, _b = nodes.c, sibling_blocks.c
_COLUMNS = (_b.id, _b.level, _b.parent_block, _b.start, _b.size)


def _number(name: str) -> sa.BindParameter[int]:
    return bindparam(name, type_=NUMBER)


_NOTE = Statement(
    sa.insert(node_changes).values(
        kind=bindparam("kind"), id=ZERO, parent_id=bindparam("parent"), change=sa.literal_column("'order'")
    )
)


def note_order(tx: Transaction, kind: str, parent: int | None) -> None:
    """Record in the change journal that children of a parent get other positions, which outdates answers that show them.

    Adding a child at the end moves no other child and need not be recorded.
    """
    note_orders(tx, kind, (parent,))


def note_orders(tx: Transaction, kind: str, parents: Iterable[int | None]) -> None:
    """Do for several parents what `note_order` does for one."""
    tx.execute_many(_NOTE, [{"kind": kind, "parent": parent or 0} for parent in parents])


_NEXT_ID = Statement(sa.select(sa.func.coalesce(sa.func.max(_b.id), ZERO) + 1))
_ADD = Statement(sa.insert(sibling_blocks).values({column.name: bindparam(column.name) for column in sibling_blocks.columns}))
_DELETE = Statement(sa.delete(sibling_blocks).where(_b.id == bindparam("id")))
_ENTRIES = Statement(sa.select(*_COLUMNS).where(_b.parent_block == bindparam("parent_block")).order_by(_b.start, _b.size))
_SET_SIZE = Statement(sa.update(sibling_blocks).where(_b.id == bindparam("block")).values(size=bindparam("new")))
_SET_PARENT = Statement(sa.update(sibling_blocks).where(_b.id == bindparam("block")).values(parent_block=bindparam("to")))
_RENAME = Statement(sa.update(sibling_blocks).where(_b.id == bindparam("block")).values(id=bindparam("to")))
_TRANSFER_BLOCKS = Statement(
    sa.update(sibling_blocks)
    .where(_b.parent_block == _number("block"), _b.start >= _number("first"))
    .values(parent_block=_number("to"), start=_b.start + _number("by"))
)


def _path_to_position() -> Statement:
    """Find the blocks from the root, `:root`, down to the leaf for an insert at `:position`; between two leaves, the first one."""
    block, entry = sibling_blocks.alias(), sibling_blocks.alias()
    root = sa.select(*_COLUMNS, sa.cast(ZERO, NUMBER).label("absolute")).where(_b.id == _number("root"))
    path = root.cte("path", recursive=True)
    absolute, position = path.c.absolute + entry.c.start, _number("position")
    holds = sa.or_(
        sa.and_(absolute < position, absolute + entry.c.size >= position),
        sa.and_(position == ZERO, absolute == ZERO, entry.c.start == ZERO),
    )
    # A subquery that finds one id, not a join: PostgreSQL estimates many rows for the join and would read all blocks.
    found = sa.select(entry.c.id).where(entry.c.parent_block == path.c.id, holds)
    found_id = found.limit(sa.literal_column("1")).correlate(path).scalar_subquery()
    columns = (block.c[column.name] for column in _COLUMNS)
    path = path.union_all(sa.select(*columns, path.c.absolute + block.c.start).select_from(path).where(block.c.id == found_id))
    return Statement(sa.select(path).order_by(path.c.level.desc()))


def _path_to_block() -> Statement:
    """Find the blocks from the root down to `:block`. UNION, not UNION ALL: it must end where damaged blocks form a cycle."""
    parent = sibling_blocks.alias()
    path = sa.select(*_COLUMNS).where(_b.id == bindparam("block")).cte("path", recursive=True)
    path = path.union(sa.select(*(parent.c[column.name] for column in _COLUMNS)).where(parent.c.id == path.c.parent_block))
    return Statement(sa.select(path).order_by(path.c.level.desc()))


def _resize_path() -> Statement:
    """Add `:by` to the size of each block on a path, and to the start of each block after one of them, in one statement."""
    behind = [sa.and_(_b.parent_block == _number(f"block{n}"), _b.start >= _number(f"start{n + 1}")) for n in range(HEIGHT)]
    on_path = _b.id.in_([_number(f"block{n}") for n in range(HEIGHT + 1)])
    return Statement(
        sa.update(sibling_blocks)
        .where(sa.or_(_b.id == _number("block0"), *behind))
        .values(
            size=_b.size + sa.case((on_path, _number("by")), else_=ZERO),
            start=_b.start + sa.case((on_path, ZERO), else_=_number("by")),
        )
    )


def _delete_trees() -> Statement:
    """Delete all blocks of the children of `:parents`, from each root down."""
    roots = sa.select(_b.id).where(_b.kind == bindparam("kind"), IdIn(_b.parent_id, "parents"), _b.parent_block == ZERO)
    down = roots.cte("down", recursive=True, nesting=True)
    block = sibling_blocks.alias()
    down = down.union_all(sa.select(block.c.id).where(block.c.parent_block == down.c.id))
    return Statement(sa.delete(sibling_blocks).where(_b.id.in_(sa.select(down.c.id))))


_PATH_TO_POSITION, _PATH_TO_BLOCK, _RESIZE_PATH, _DELETE_TREES = (
    _path_to_position(),
    _path_to_block(),
    _resize_path(),
    _delete_trees(),
)


@cache
def _shift(top: bool) -> Statement:  # noqa: FBT001  # see `is_child`
    those = sa.and_(is_child(top), _c.block == _number("block"), _c.block_offset.between(_number("first"), _number("last")))
    return Statement(sa.update(nodes).where(those).values(block_offset=_c.block_offset + _number("by")))


@cache
def _offsets(top: bool) -> Statement:  # noqa: FBT001
    those = sa.and_(is_child(top), IdIn(_c.block, "blocks"))
    return Statement(sa.select(_c.block, _c.id, _c.block_offset).where(those).order_by(_c.block, _c.block_offset))


_SET_OFFSET = Statement(
    sa.update(nodes).where(_c.kind == bindparam("kind"), _c.id == bindparam("node")).values(block_offset=bindparam("new_offset"))
)


@cache
def _transfer_rows(top: bool) -> Statement:  # noqa: FBT001
    those = sa.and_(is_child(top), _c.block == _number("block"), _c.block_offset >= _number("first"))
    return Statement(sa.update(nodes).where(those).values(block=_number("to"), block_offset=_c.block_offset + _number("by")))


@cache
def _distribute(top: bool) -> Statement:  # noqa: FBT001
    position = POSITION + sa.case((_number("first") <= POSITION, _number("room")), else_=ZERO)
    block, offset = _number("leaf") + position // _number("per_block"), position % _number("per_block")
    return Statement(sa.update(nodes).where(is_child(top)).values(block=block, block_offset=offset))


@cache
def _flatten(top: bool) -> Statement:  # noqa: FBT001
    return Statement(sa.update(nodes).where(is_child(top), _c.block > ZERO).values(block=ZERO, block_offset=POSITION))


_NO_BLOCK: Final = Block(-1, 0, -1, 0, 0)  # fills the levels that a path does not have; its id matches no row


class BlockRows:
    """The rows of the blocks of the children of `parent`, in one transaction. Block 0, for siblings without blocks, has no row."""

    def __init__(self, tx: Transaction, kind: str, parent: int | None) -> None:
        self._tx, self._kind, self._parent = tx, kind, parent
        self._params: dict[str, Any] = {"kind": kind, **parent_param(parent)}

    def next_id(self) -> int:
        """Return an id for a new block. It may be that of a deleted block, since nothing else refers to blocks."""
        return int(self._tx.fetch(_NEXT_ID)[0][0])

    def add(self, *blocks: Block) -> None:
        """Insert blocks."""
        own = {"kind": self._kind, "parent_id": self._parent or 0}
        names = ("id", "level", "parent_block", "start", "size")
        if blocks:
            self._tx.execute_many(_ADD, [own | dict(zip(names, astuple(block), strict=True)) for block in blocks])

    def path_to_position(self, position: int, root: int) -> list[Block]:
        """Read the blocks from the root down to the leaf into which a row for a position is to be inserted."""
        return self._read(_PATH_TO_POSITION, root=root, position=position)

    def path_to_block(self, block: int) -> list[Block]:
        """Read the blocks from the root down to the given one."""
        return self._read(_PATH_TO_BLOCK, block=block)

    def entries(self, block: int) -> list[Block]:
        """Read the entries of a block above the leaves, in order."""
        return self._read(_ENTRIES, parent_block=block)

    def _read(self, statement: Statement, **params: Any) -> list[Block]:
        return [Block(*row[:5]) for row in self._tx.fetch(statement, **params)]

    def shift(self, block: int, first: int, end: int, by: int) -> None:
        """Add `by` to the offsets from `first` up to, but not including, `end` of the rows in a leaf block."""
        if first < end:
            params = {"block": block, "first": first, "last": end - 1, "by": by}
            self._tx.execute(_shift(self._parent is None), **self._params, **params)

    def renumber(self, blocks: Sequence[int]) -> None:
        """Number the rows in each of some leaf blocks 0…n-1, in their present order."""
        found = self._tx.fetch(_offsets(self._parent is None), **self._params, blocks=self._tx.id_list(blocks))
        inside: Counter[int] = Counter()
        wrong: list[dict[str, Any]] = []
        for block, node, offset in found:
            if offset != inside[block]:
                wrong.append({"kind": self._params["kind"], "node": node, "new_offset": inside[block]})
            inside[block] += 1
        if wrong:
            self._tx.execute_many(_SET_OFFSET, wrong)

    def resize_path(self, path: list[Block], by: int) -> None:
        """Add `by` to the size of each block on a path, and to the start of each block after one of these in its parent."""
        params: dict[str, int] = {}
        for n in range(HEIGHT + 1):
            block = path[n] if n < len(path) else _NO_BLOCK
            params |= {f"block{n}": block.id, f"start{n}": block.start}
        self._tx.execute(_RESIZE_PATH, **params, by=by)

    def rename(self, block: Block, to: int) -> None:
        """Give a block another id."""
        self.transfer(block, to, first=0, by=0)
        self._tx.execute(_RENAME, block=block.id, to=to)

    def transfer(self, block: Block, to: int, first: int, by: int) -> None:
        """Move the entries of a block from offset or start `first` on to the block `to`, adding `by` to that number."""
        if block.level:
            self._tx.execute(_TRANSFER_BLOCKS, block=block.id, to=to, first=first, by=by)
        else:
            self._tx.execute(_transfer_rows(self._parent is None), **self._params, block=block.id, to=to, first=first, by=by)

    def set_size(self, block: int, size: int) -> None:
        """Set the number of siblings in a block."""
        self._tx.execute(_SET_SIZE, block=block, new=size)

    def set_parent(self, block: int, parent_block: int) -> None:
        """Make a block an entry of another one."""
        self._tx.execute(_SET_PARENT, block=block, to=parent_block)

    def delete(self, block: int) -> None:
        """Delete an empty block."""
        self._tx.execute(_DELETE, id=block)

    def distribute(self, leaf: int, per_block: int, first: int, room: int) -> None:
        """Move all rows, in order, to the blocks `leaf`, `leaf` + 1 and so on, `per_block` to each, and delete the other blocks.

        `room` slots stay free at the position `first`.
        """
        params = {"leaf": leaf, "per_block": per_block, "first": first, "room": room}
        self._tx.execute(_distribute(self._parent is None), **self._params, **params)
        delete_blocks(self._tx, self._kind, [self._parent or 0])

    def flatten(self) -> None:
        """Move all rows to block 0, in order, and delete the other blocks."""
        self._tx.execute(_flatten(self._parent is None), **self._params)
        delete_blocks(self._tx, self._kind, [self._parent or 0])


def delete_blocks(tx: Transaction, kind: str, parents: Sequence[int]) -> None:
    """Delete the blocks of the children of these nodes; 0 is the top level. The children must be deleted, or have other slots."""
    tx.execute(_DELETE_TREES, kind=kind, parents=tx.id_list(parents))
