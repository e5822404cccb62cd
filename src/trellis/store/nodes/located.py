"""Reading a node with the names and ids of its ancestors in a single statement, which needs no snapshot around it."""

from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.nodes.rows import COLUMNS, MOST_LEVELS, Node, decode_node, is_above
from trellis.store.tables import nodes

_c = nodes.c
_KIND = _c.kind == bindparam("kind")
_JOINED: Final = 4  # ancestors that are read by joins
_ABOVE: Final = len(COLUMNS)  # the index in a row from which its columns are about ancestors
_NAMES: Final = slice(_ABOVE + 1, _ABOVE + 1 + _JOINED)
_IDS: Final = slice(_ABOVE + 1 + _JOINED, _ABOVE + 1 + 2 * _JOINED)


class Located(NamedTuple):
    """A node, the names of its ancestors with " > " after each ("" at the top level), and their ids, from the top level down."""

    node: Node
    above: str
    line: tuple[int, ...]


def _with_path() -> Statement:
    """Read a node and the names and ids of all its ancestors, by recursion."""
    nothing, is_it = sa.literal("", sa.Text), sa.and_(_KIND, _c.id == bindparam("id"))
    node = sa.select(_c.kind, _c.parent_id, nothing.label("above"), nothing.label("line"), sa.literal(0).label("levels"))
    up, parent = node.where(is_it).cte("up", recursive=True), nodes.alias()
    above, line = parent.c.name + " > " + up.c.above, sa.cast(parent.c.id, sa.Text) + " " + up.c.line
    next_up = sa.select(parent.c.kind, parent.c.parent_id, above, line, up.c.levels + 1)
    up = up.union_all(next_up.where(is_above(parent, up.c.kind, up.c.parent_id), up.c.levels < MOST_LEVELS))
    whole = sa.or_(up.c.parent_id.is_(None), up.c.levels == MOST_LEVELS)
    return Statement(sa.select(*COLUMNS, up.c.above, up.c.line).select_from(nodes.join(up, sa.true())).where(is_it, whole))


def _with_some_above(which: sa.ColumnElement[bool]) -> Statement:
    """Read a node, the names and ids of its ancestors from the parent on, up to _JOINED, and whether there are more.

    A join costs a tenth of what it costs to start a recursion.
    """
    joined: sa.FromClause = nodes
    above = [nodes.alias() for _ in range(_JOINED)]
    below: sa.FromClause = nodes
    for one in above:
        kind = below.c.kind.concat(sa.literal_column("''"))  # PostgreSQL would replace the plain column by `:kind`
        joined = joined.outerjoin(one, is_above(one, kind, below.c.parent_id))
        below = one
    names, ids = (one.c.name for one in above), (one.c.id for one in above)
    return Statement(sa.select(*COLUMNS, below.c.parent_id, *names, *ids).select_from(joined).where(_KIND, which))


_FIND_WITH_PATH = _with_path()
_FIND_WITH_SOME_ABOVE = _with_some_above(_c.id == bindparam("id"))
_FIND_EXTERNAL_WITH_SOME_ABOVE = _with_some_above(_c.external_id == bindparam("id"))


def find_with_path(tx: Transaction, kind: str, node: int | str) -> Located | None:
    """Read a node by its id, or by its external id if `node` is a text, with the names and ids of its ancestors."""
    rows = tx.fetch(_FIND_EXTERNAL_WITH_SOME_ABOVE if isinstance(node, str) else _FIND_WITH_SOME_ABOVE, kind=kind, id=node)
    if not rows:
        return None
    row = rows[0]
    if row[_ABOVE] is not None:  # there are more ancestors: read again, since node and names must be of one snapshot
        rows = tx.fetch(_FIND_WITH_PATH, kind=kind, id=row[0])
        return Located(decode_node(rows[0], tx), rows[0][_ABOVE], tuple(map(int, rows[0][_ABOVE + 1].split()))) if rows else None
    above = ""
    line: tuple[int, ...] = ()
    for name, ancestor in zip(row[_NAMES], row[_IDS], strict=True):
        if name is None:
            break
        above, line = f"{name} > {above}", (ancestor, *line)
    return Located(decode_node(row, tx), above, line)
