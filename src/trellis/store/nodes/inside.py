"""Which nodes are inside a part of the community: some nodes (the roots), given by their ids as `:inside`, and all below them."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from trellis.store.engine import IdIn, NodeIdIn, Rare, Transaction
from trellis.store.nodes.rows import MOST_LEVELS, find_ancestors, is_above
from trellis.store.tables import nodes

_c = nodes.c


def _inside() -> sa.CTE:
    top = sa.select(_c.kind, _c.id).where(NodeIdIn(_c.id, "inside"))
    inside = top.cte("inside", recursive=True, nesting=True)
    child = nodes.alias()
    return inside.union(
        sa.select(child.c.kind, child.c.id).where(child.c.kind == inside.c.kind, Rare(child.c.parent_id, inside.c.id))
    )


def is_inside(node: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Build the condition that a node is inside. All nodes inside are found once: suitable if many of them are wanted."""
    return node.in_(sa.select(_inside().c.id))


def leads_inside(kind: sa.ColumnElement[str], node: sa.ColumnElement[int], parent: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Build the same condition, checked for each row by its ancestors: suitable if few rows are examined."""
    row = (kind.label("kind"), parent.label("id"), sa.literal(0).label("levels"))
    up, above = sa.select(*row).correlate(*_tables(parent)).cte("up", recursive=True, nesting=True), nodes.alias()
    next_up = sa.select(above.c.kind, above.c.parent_id, up.c.levels + 1)
    up = up.union_all(next_up.where(is_above(above, up.c.kind, up.c.id), up.c.levels < MOST_LEVELS))
    return sa.or_(IdIn(node, "inside"), sa.exists(sa.select(up.c.id).where(IdIn(up.c.id, "inside"))))


def _tables(column: sa.ColumnElement[int]) -> Sequence[sa.FromClause]:
    return column._from_objects  # noqa: SLF001  # the table whose rows are checked, even if the column is wrapped


def find_inside(tx: Transaction, kind: str, roots: Iterable[int], ids: Iterable[int]) -> set[int]:
    """Return the nodes among `ids` that exist and are inside the roots."""
    wanted, tops = set(ids), set(roots)
    lines = find_ancestors(tx, kind, wanted)
    inside = tops & lines.keys()
    outside: set[int | None] = {None}
    for node in lines:
        path: list[int] = []
        at: int | None = node
        while at is not None and at not in inside and at not in outside and len(path) <= len(lines):
            path.append(at)
            at = lines[at][0] if at in lines else None
        (inside if at in inside else outside).update(path)
    return wanted & inside


def find_tops(tx: Transaction, kind: str, roots: Iterable[int]) -> list[int]:
    """Return the roots that exist and are not below another root."""
    lines = find_ancestors(tx, kind, roots)
    there = [root for root in roots if root in lines]
    parents = {root: lines[root][0] for root in there}
    above = find_inside(tx, kind, there, {parent for parent in parents.values() if parent is not None})
    return [root for root in there if parents[root] not in above]
