"""Reading subtrees: parents before their children, siblings in their order."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import IdIn, NodeIdIn, Rare, Statement, Transaction
from trellis.store.nodes.bounded import Room, read_nodes
from trellis.store.nodes.rows import BELOW, Node, find_ancestors, is_in
from trellis.store.siblings import POSITION
from trellis.store.tables import nodes

_c = nodes.c
_KIND = _c.kind == bindparam("kind")
_OUTLINE = Statement(
    sa.select(_c.id, _c.parent_id, POSITION)
    .join(BELOW, is_in(BELOW))
    .where(BELOW.c.depth > 0)
    .order_by(BELOW.c.depth, POSITION, _c.id)
)


def find_outline(tx: Transaction, kind: str, root: int) -> list[tuple[int, int, int]]:
    """Read id, parent's id and position of all descendants of a node, parents before their children, siblings in order."""
    return [(row[0], row[1], row[2]) for row in tx.fetch(_OUTLINE, kind=kind, root=root)]


def find_level(tx: Transaction, kind: str, node: int | None) -> int:
    """Return the level of a node: 1 at the top level, 0 for None."""
    return 0 if node is None else len(find_ancestors(tx, kind, (node,)))


def _heights() -> Statement:
    top = sa.select(_c.kind, _c.id, _c.id.label("root"), sa.literal(0).label("depth")).where(NodeIdIn(_c.id, "roots"))
    down = top.cte("down", recursive=True)
    child = nodes.alias()
    down = down.union_all(
        sa.select(child.c.kind, child.c.id, down.c.root, down.c.depth + 1).where(
            child.c.kind == down.c.kind,
            Rare(child.c.parent_id, down.c.id),
            sa.not_(IdIn(child.c.id, "apart")),
            down.c.depth < bindparam("depth", type_=sa.Integer),
        )
    )
    return Statement(sa.select(down.c.root, sa.func.max(down.c.depth)).group_by(down.c.root))


_HEIGHTS = _heights()


def measure_heights(tx: Transaction, kind: str, roots: Sequence[int], apart: Sequence[int], most: int) -> dict[int, int]:
    """Return how many levels there are below each of some nodes, at most `most`: id → number.

    Nodes in `apart`, and all nodes below them, do not count.
    """
    rows = tx.fetch(_HEIGHTS, kind=kind, roots=tx.id_list(roots), apart=tx.id_list(apart), depth=most)
    return {row[0]: row[1] for row in rows}


def reaches_down(tx: Transaction, kind: str, node: int, levels: int) -> bool:
    """Return whether there are nodes a number of levels below a node."""
    return levels <= 0 or measure_heights(tx, kind, (node,), (), levels).get(node) == levels


_child = nodes.alias()


def _tree(top: sa.ColumnElement[bool], *below: sa.ColumnElement[bool]) -> Statement:
    """Select the nodes `top` and those below them, `:depth` levels in all, parents before their children, siblings in order.

    If there are more than `:most`, any `:most` of them: neither engine reads or sorts more.
    """
    down = sa.select(_c.kind, _c.id, sa.literal(1).label("depth")).where(top).cte("down", recursive=True)
    is_child = (_child.c.kind == down.c.kind, Rare(_child.c.parent_id, down.c.id), *below)
    is_near = down.c.depth < bindparam("depth", type_=sa.Integer)
    down = down.union_all(sa.select(_child.c.kind, _child.c.id, down.c.depth + 1).where(*is_child, is_near))
    some = sa.select(down).limit(bindparam("most", type_=sa.Integer)).subquery()
    found = sa.select(_c.id, POSITION).join(some, is_in(some))  # only ids: SQLite would carry the texts along while it sorts
    return Statement(found.order_by(some.c.depth, POSITION, _c.id))


_WHOLE_TREE = _tree(sa.and_(_KIND, _c.parent_id.is_(None)))
_TREE_BELOW = _tree(  # a cycle in a damaged tree leads back to the root, as in BELOW
    sa.and_(_KIND, _c.parent_id == bindparam("root"), _c.id != bindparam("root")), _child.c.id != bindparam("root")
)
_TREES = _tree(NodeIdIn(_c.id, "tops"))
_TREES_BELOW = _tree(NodeIdIn(_c.parent_id, "tops"))


def find_tree(
    tx: Transaction, kind: str, root: int | None, depth: int, room: Room, tops: Sequence[int] | None = None
) -> list[Node]:
    """Read the nodes below a node (None: all of the kind), `depth` levels of them, parents before their children. Raises TooMuch.

    Siblings are in their order. With `tops`, read these nodes and those below them instead, `depth` levels in all.
    """
    most = room.nodes + 1
    if tops is not None:
        rows = tx.fetch(_TREES, kind=kind, tops=tx.id_list(tops), depth=depth, most=most)
    elif root is None:
        rows = tx.fetch(_WHOLE_TREE, kind=kind, depth=depth, most=most)
    else:
        rows = tx.fetch(_TREE_BELOW, kind=kind, root=root, depth=depth, most=most)
    return read_nodes(tx, kind, [row[0] for row in rows], room)


def find_below(tx: Transaction, kind: str, tops: Sequence[int], depth: int, room: Room) -> list[Node]:
    """Read the nodes below some nodes, which `find_tops` has found, as `find_tree` reads those below one. Raises TooMuch."""
    rows = tx.fetch(_TREES_BELOW, kind=kind, tops=tx.id_list(tops), depth=depth, most=room.nodes + 1)
    return read_nodes(tx, kind, [row[0] for row in rows], room)
