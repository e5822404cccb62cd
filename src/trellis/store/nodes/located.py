"""Reading a node with what is above it, in a single statement, which needs no snapshot around it."""

from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.nodes.rows import COLUMNS, Node, decode_node
from trellis.store.tables import nodes

_c = nodes.c
_KIND = _c.kind == bindparam("kind")
_ABOVE: Final = len(COLUMNS)  # where the names above a node stand in a row that has them too, and behind them the ids
_PARENT_OF_SECOND: Final = _ABOVE + 3


class Located(NamedTuple):
    """A node, the names of its ancestors with ' > ' behind each ("" at the top level), and their ids."""

    node: Node
    above: str
    line: tuple[int, ...]


def _with_path() -> Statement:
    """Read a node and the names of its ancestors in one statement, which needs no snapshot."""
    up = (
        sa.select(_c.parent_id, sa.literal("", sa.Text).label("above"), sa.literal("", sa.Text).label("line"))
        .where(_KIND, _c.id == bindparam("id"))
        .cte("up", recursive=True)
    )
    parent = nodes.alias()
    up = up.union_all(
        sa.select(parent.c.parent_id, parent.c.name + " > " + up.c.above, sa.cast(parent.c.id, sa.Text) + " " + up.c.line).where(
            parent.c.kind == bindparam("kind"), parent.c.id == up.c.parent_id
        )
    )
    top = sa.and_(_KIND, _c.id == bindparam("id"), up.c.parent_id.is_(None))
    return Statement(sa.select(*COLUMNS, up.c.above, up.c.line).select_from(nodes.join(up, sa.true())).where(top))


def _with_two_above(which: sa.ColumnElement[bool]) -> Statement:
    """Read a node, the names of its parent and grandparent, and the parent of that one: for most nodes, that is all there is.

    Two joins cost half as much as the recursive statement.
    """
    parent, second = nodes.alias(), nodes.alias()
    joined = nodes.outerjoin(parent, sa.and_(parent.c.kind == _c.kind, parent.c.id == _c.parent_id)).outerjoin(
        second, sa.and_(second.c.kind == parent.c.kind, second.c.id == parent.c.parent_id)
    )
    columns = (*COLUMNS, parent.c.name, second.c.name, second.c.id, second.c.parent_id)
    return Statement(sa.select(*columns).select_from(joined).where(_KIND, which))


_FIND_WITH_PATH = _with_path()
_FIND_WITH_TWO_ABOVE = _with_two_above(_c.id == bindparam("id"))
_FIND_EXTERNAL_WITH_TWO_ABOVE = _with_two_above(_c.external_id == bindparam("id"))


def find_with_path(tx: Transaction, kind: str, node: int | str) -> Located | None:
    """Read the node with an id, or with an external id if it is text, and the names and ids of its ancestors."""
    rows = tx.fetch(_FIND_EXTERNAL_WITH_TWO_ABOVE if isinstance(node, str) else _FIND_WITH_TWO_ABOVE, kind=kind, id=node)
    if not rows:
        return None
    row = rows[0]
    if row[_PARENT_OF_SECOND] is not None:  # deeper: read again, since node and names must be of one snapshot
        rows = tx.fetch(_FIND_WITH_PATH, kind=kind, id=row[0])
        return Located(decode_node(rows[0], tx), rows[0][_ABOVE], tuple(map(int, rows[0][_ABOVE + 1].split()))) if rows else None
    found, names = decode_node(row, tx), row[_ABOVE : _ABOVE + 2]
    if found.parent_id is None or names[0] is None:
        return Located(found, "", ())
    if names[1] is None:
        return Located(found, f"{names[0]} > ", (found.parent_id,))
    return Located(found, f"{names[1]} > {names[0]} > ", (row[_ABOVE + 2], found.parent_id))
