"""The rows of nodes: reading one, a line of ancestors; inserting, changing and deleting."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.counters import add
from trellis.store.engine import Among, AmongOf, Mentions, Row, Statement, Transaction
from trellis.store.nodes import deleted_ids
from trellis.store.siblings import CAPACITY, PLACE, ZERO, Family, Spot, forget, spot_of
from trellis.store.tables import nodes, shelves

_c = nodes.c
T = TypeVar("T")
COLUMNS = (_c.id, _c.parent_id, PLACE, _c.name, _c.fields, _c.permissions, _c.created_at, _c.updated_at)
_KIND = _c.kind == bindparam("kind")


@dataclass(slots=True)
class Node:
    """A node as it is kept, `position` its place among its siblings.

    `fields` are the kind's own, `permissions` option → "*" or a list of group ids.
    """

    id: int
    parent_id: int | None
    position: int
    name: str
    fields: dict[str, Any]
    permissions: dict[str, Any]
    created_at: str
    updated_at: str


def node_of(row: Row, tx: Transaction) -> Node:
    """Make a node of a row of COLUMNS."""
    return Node(row[0], row[1], row[2], row[3], tx.decoded(row[4]), tx.decoded(row[5]), row[6], row[7])


_FIND = Statement(sa.select(*COLUMNS).where(_KIND, _c.id == bindparam("id")))


def find(tx: Transaction, kind: str, node: int) -> Node | None:
    """Read one node."""
    rows = tx.rows(_FIND, kind=kind, id=node)
    return node_of(rows[0], tx) if rows else None


def _with_path() -> Statement:
    """Read a node and the names above it in one statement, which needs no snapshot around it."""
    up = (
        sa.select(_c.parent_id, sa.literal("", sa.Text).label("above"))
        .where(_KIND, _c.id == bindparam("id"))
        .cte("up", recursive=True)
    )
    parent = nodes.alias()
    up = up.union_all(
        sa.select(parent.c.parent_id, parent.c.name + " > " + up.c.above).where(
            parent.c.kind == bindparam("kind"), parent.c.id == up.c.parent_id
        )
    )
    above = sa.select(up.c.above).where(up.c.parent_id.is_(None)).scalar_subquery()
    return Statement(sa.select(*COLUMNS, above).where(_KIND, _c.id == bindparam("id")))


def _with_two_above() -> Statement:
    """Read a node, the names of its parent and of that one's, and whose child that one is: all there is for most."""
    parent, second = nodes.alias(), nodes.alias()
    way = nodes.outerjoin(parent, sa.and_(parent.c.kind == _c.kind, parent.c.id == _c.parent_id)).outerjoin(
        second, sa.and_(second.c.kind == parent.c.kind, second.c.id == parent.c.parent_id)
    )
    columns = (*COLUMNS, parent.c.name, second.c.name, second.c.parent_id)
    return Statement(sa.select(*columns).select_from(way).where(_KIND, _c.id == bindparam("id")))


_FIND_WITH_PATH = _with_path()
_FIND_WITH_TWO_ABOVE = _with_two_above()


def find_with_path(tx: Transaction, kind: str, node: int) -> tuple[Node, str] | None:
    """Read one node, and the names above it with ' > ' behind each; "" at the top level."""
    rows = tx.rows(_FIND_WITH_TWO_ABOVE, kind=kind, id=node)
    if rows and rows[0][10] is not None:  # deeper: once more, since the answer has to come from one statement
        rows = tx.rows(_FIND_WITH_PATH, kind=kind, id=node)
        return (node_of(rows[0], tx), rows[0][8]) if rows else None
    return (node_of(rows[0], tx), "".join(f"{name} > " for name in rows[0][9:7:-1] if name is not None)) if rows else None


_THESE = Statement(sa.select(*COLUMNS).where(_KIND, AmongOf(_c.id, "ids")))


def find_these(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, Node]:
    """Read some nodes, by id."""
    return {row[0]: node_of(row, tx) for row in tx.rows(_THESE, kind=kind, ids=tx.ids(ids))}


_EXISTING = Statement(sa.select(_c.id).where(_KIND, Among(_c.id, "ids")))


def existing(tx: Transaction, kind: str, ids: Iterable[int]) -> set[int]:
    """Say which of these ids there are."""
    wanted = sorted(set(ids))
    return {row[0] for row in tx.rows(_EXISTING, kind=kind, ids=tx.ids(wanted))} if wanted else set()


# --- lines of ancestors and subtrees ------------------------------------------------------------------------------


def _line() -> Statement:
    up = sa.select(_c.id, _c.parent_id, _c.name).where(_KIND, Among(_c.id, "ids")).cte("up", recursive=True)
    above = nodes.alias()
    up = up.union(
        sa.select(above.c.id, above.c.parent_id, above.c.name).where(
            above.c.kind == bindparam("kind"), above.c.id == up.c.parent_id
        )
    )
    return Statement(sa.select(up.c.id, up.c.parent_id, up.c.name))


_LINE = _line()


def lines(tx: Transaction, kind: str, ids: Iterable[int]) -> dict[int, tuple[int | None, str]]:
    """Read these nodes and all above them: id → (parent's id, name)."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {row[0]: (row[1], row[2]) for row in tx.rows(_LINE, kind=kind, ids=tx.ids(wanted))}


def _below() -> sa.CTE:
    # Nested, since Python's sqlite3 tells no number of rows for a statement that begins with WITH.
    top = sa.select(_c.id, sa.literal(0).label("depth")).where(_KIND, _c.id == bindparam("root"))
    down = top.cte("down", recursive=True, nesting=True)
    child = nodes.alias()
    return down.union_all(
        sa.select(child.c.id, down.c.depth + 1).where(child.c.kind == bindparam("kind"), child.c.parent_id == down.c.id)
    )


BELOW = _below()
_SUBTREE = Statement(sa.select(BELOW.c.id).where(BELOW.c.depth > 0).order_by(BELOW.c.depth, BELOW.c.id))
_DELETE = Statement(sa.delete(nodes).where(_KIND, AmongOf(_c.id, "ids")))
_SHELVED = Statement(
    sa.select(shelves.c.parent_id).where(
        shelves.c.kind == bindparam("kind"), shelves.c.above == ZERO, shelves.c.parent_id.in_(sa.select(BELOW.c.id))
    )
)


def descendants(tx: Transaction, kind: str, root: int) -> list[int]:
    """Give the ids of all nodes below one, the nearer before the farther."""
    return [row[0] for row in tx.rows(_SUBTREE, kind=kind, root=root)]


_OUTLINE = Statement(
    sa.select(_c.id, _c.parent_id, PLACE)
    .join(BELOW, BELOW.c.id == _c.id)
    .where(_KIND, BELOW.c.depth > 0)
    .order_by(BELOW.c.depth, PLACE, _c.id)
)


def outline_below(tx: Transaction, kind: str, root: int) -> list[tuple[int, int, int]]:
    """Give id, parent and place of all nodes below one, parents before their children."""
    return [(row[0], row[1], row[2]) for row in tx.rows(_OUTLINE, kind=kind, root=root)]


SLICE: Final = 2000  # rows that one statement deletes or brings back: so many are quick, and then it can be told


def slices(ids: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut ids, or rows, into slices, in their order."""
    return (ids[first : first + SLICE] for first in range(0, len(ids), SLICE))


def delete_subtree(
    tx: Transaction,
    kind: str,
    node: Node,
    below: Sequence[int] | None = None,
    going: Callable[[Sequence[int]], None] = lambda _ids: None,
) -> int:
    """Delete a node with all below it, and let its siblings close up; give the number of those that are gone.

    `below` are its `descendants`, where they are known already. The farthest go first, in slices; `going` is told of each
    slice before its rows are gone.
    """
    spot = spot_of(tx, kind, node.id)
    shelved = [row[0] for row in tx.rows(_SHELVED, kind=kind, root=node.id)]
    gone = [node.id, *(descendants(tx, kind, node.id) if below is None else below)]
    for ids in slices(gone[::-1]):
        going(ids)
        tx.change(_DELETE, kind=kind, ids=tx.ids(ids))
    if shelved:
        forget(tx, kind, shelved)
    Family(tx, kind, node.parent_id).leave(spot)
    add(tx, kind, -len(gone))
    deleted_ids.open_up(tx, kind, gone)
    return len(gone)


# --- writing one node ---------------------------------------------------------------------------------------------

_INSERT = Statement(sa.insert(nodes).values({column.name: bindparam(column.name) for column in nodes.columns}))


def insert(tx: Transaction, kind: str, node: Node, wanted: int | None = None) -> Node:
    """Write a new node, under an id that `counters.next_number` gave and counted, and give it with its place.

    That is the `wanted` one, for which its siblings make way, or behind the last one.
    """
    spot, place = Family(tx, kind, node.parent_id).enter(wanted)
    tx.change(_INSERT, **_values(kind, node, spot))
    return replace(node, position=place)


def _values(kind: str, node: Node, spot: Spot) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": node.id,
        "parent_id": node.parent_id,
        "shelf": spot.shelf,
        "position": spot.at,
        "name": node.name,
        "name_key": name_key(node.name),
        "fields": Transaction.encoded(node.fields),
        "permissions": Transaction.encoded(node.permissions),
        "created_at": node.created_at,
        "updated_at": node.updated_at,
    }


def insert_below(tx: Transaction, kind: str, slices: Iterable[Sequence[Node]]) -> None:
    """Write many new nodes whose ids `counters.next_numbers` gave, slice by slice, parents before their children.

    Their parents must be new too, with no other children: the places of siblings are those of the nodes, 0…n-1.
    """
    families: Counter[int] = Counter()
    for rows in slices:
        families.update(row.parent_id for row in rows if row.parent_id is not None)
        tx.change_many(_INSERT, [_values(kind, row, Spot(0, row.position)) for row in rows])
    for parent, count in families.items():
        if count > CAPACITY:
            Family(tx, kind, parent).deal_out(count)


_UPDATE = Statement(
    sa.update(nodes)
    .where(_KIND, _c.id == bindparam("node"))
    .values({name: bindparam("new_" + name) for name in ("name", "name_key", "fields", "permissions", "updated_at")})
)


def update(tx: Transaction, kind: str, node: Node) -> None:
    """Write the name, fields, permissions and time of change of a node; its place is left alone."""
    tx.change(
        _UPDATE,
        kind=kind,
        node=node.id,
        new_name=node.name,
        new_name_key=name_key(node.name),
        new_fields=tx.encoded(node.fields),
        new_permissions=tx.encoded(node.permissions),
        new_updated_at=node.updated_at,
    )


def name_key(name: str) -> str:
    """Fold a name for sorting and searching."""
    return name.casefold()


_MENTIONING = Statement(
    sa.select(_c.kind, *COLUMNS)
    .where(sa.or_(Mentions(_c.permissions, "group"), Mentions(_c.fields, "group")))
    .order_by(_c.kind, _c.id)
)


def mentioning(tx: Transaction, group: int) -> list[tuple[str, Node]]:
    """Find the nodes in whose permissions or fields a number stands: the group's id, or a number that looks like it."""
    return [(row[0], node_of(row[1:], tx)) for row in tx.rows(_MENTIONING, group=group)]


def every(tx: Transaction, kind: str) -> list[Node]:
    """Read all nodes of a kind, by id."""
    statement = sa.select(*COLUMNS).where(_c.kind == kind).order_by(_c.id)
    return [node_of(tuple(row), tx) for row in tx.connection.execute(statement)]
