"""The rows of nodes: reading them, their ancestors and descendants; inserting, changing and deleting."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import siblings
from trellis.store.counters import add_to_total
from trellis.store.engine import MentionsNumber, NodeIdIn, Rare, Row, Statement, TextIn, Transaction
from trellis.store.nodes import deleted_ids
from trellis.store.siblings import POSITION, Slot
from trellis.store.tables import nodes

_c = nodes.c
T = TypeVar("T")
COLUMNS = (
    _c.id,
    _c.parent_id,
    POSITION,
    _c.name,
    _c.fields,
    _c.permissions,
    _c.created_at,
    _c.updated_at,
    _c.external_id,
    _c.managed_by,
)
_KIND = _c.kind == bindparam("kind")


@dataclass(slots=True)
class Node:
    """A node as it is stored; `position` is its index among its siblings.

    `fields` are the fields that the kind declares; `permissions` maps each option to "*" or a list of group ids.
    """

    id: int
    parent_id: int | None
    position: int
    name: str
    fields: dict[str, Any]
    permissions: dict[str, Any]
    created_at: str
    updated_at: str
    external_id: str | None = None
    managed_by: str | None = None


def decode_node(row: Row, tx: Transaction) -> Node:
    """Convert a row of COLUMNS to a node."""
    return Node(row[0], row[1], row[2], row[3], tx.decode(row[4]), tx.decode(row[5]), row[6], row[7], row[8], row[9])


_FIND = Statement(sa.select(*COLUMNS).where(_KIND, _c.id == bindparam("id")))


def find(tx: Transaction, kind: str, node: int) -> Node | None:
    """Read one node."""
    rows = tx.fetch(_FIND, kind=kind, id=node)
    return decode_node(rows[0], tx) if rows else None


_BY_EXTERNAL_IDS = Statement(sa.select(_c.external_id, _c.id).where(_KIND, TextIn(_c.external_id, "texts")))


def find_by_external_ids(tx: Transaction, kind: str, external_ids: Iterable[str]) -> dict[str, int]:
    """Find the nodes with these external ids: external id → id. Those that do not exist are left out."""
    wanted = sorted(set(external_ids))
    return {row[0]: row[1] for row in tx.fetch(_BY_EXTERNAL_IDS, kind=kind, texts=tx.id_list(wanted))} if wanted else {}


_BY_IDS = Statement(sa.select(*COLUMNS).where(NodeIdIn(_c.id, "ids")))


def find_by_ids(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, Node]:
    """Read some nodes: id → node. Those that do not exist are left out."""
    return {row[0]: decode_node(row, tx) for row in tx.fetch(_BY_IDS, kind=kind, ids=tx.id_list(ids))}


_EXISTING = Statement(sa.select(_c.id).where(NodeIdIn(_c.id, "ids")))


def find_existing(tx: Transaction, kind: str, ids: Iterable[int]) -> set[int]:
    """Return those of the ids that exist."""
    wanted = sorted(set(ids))
    return {row[0] for row in tx.fetch(_EXISTING, kind=kind, ids=tx.id_list(wanted))} if wanted else set()


# --- ancestors and descendants ------------------------------------------------------------------------------------

MOST_LEVELS: Final = 1000  # levels that are read: no tree is so deep, but in a damaged one the parents may form an endless cycle


def is_above(parent: sa.FromClause, kind: sa.ColumnElement[str], parent_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Build the condition that a row of `nodes` is the parent of another row, given the kind and parent id of that row.

    With a condition on `:kind` instead, PostgreSQL would read and compare all nodes of the kind for each level: without statistics
    of kinds it expects one node of each kind in a table of up to a few hundred nodes, and at most five in one of a thousand.
    """
    return sa.and_(parent.c.kind == kind, parent.c.id == parent_id)


def _ancestors() -> Statement:
    up = sa.select(_c.kind, _c.id, _c.parent_id, _c.name).where(NodeIdIn(_c.id, "ids")).cte("up", recursive=True)
    above = nodes.alias()
    row = (above.c.kind, above.c.id, above.c.parent_id, above.c.name)
    up = up.union(sa.select(*row).where(is_above(above, up.c.kind, up.c.parent_id)))
    return Statement(sa.select(up.c.id, up.c.parent_id, up.c.name))


_ANCESTORS = _ancestors()


def find_ancestors(tx: Transaction, kind: str, ids: Iterable[int]) -> dict[int, tuple[int | None, str]]:
    """Read these nodes and all their ancestors: id → (parent's id, name)."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {row[0]: (row[1], row[2]) for row in tx.fetch(_ANCESTORS, kind=kind, ids=tx.id_list(wanted))}


def _below() -> sa.CTE:
    # Nested, since Python's sqlite3 returns no row count for a statement that begins with WITH.
    top = sa.select(_c.kind, _c.id, sa.literal(0).label("depth")).where(_KIND, _c.id == bindparam("root"))
    down = top.cte("down", recursive=True, nesting=True)
    child = nodes.alias()
    # Each node has one parent, so a cycle, which only damage can cause, leads back to the root before it reaches any node again.
    is_child = sa.and_(child.c.kind == down.c.kind, Rare(child.c.parent_id, down.c.id), child.c.id != bindparam("root"))
    return down.union_all(sa.select(child.c.kind, child.c.id, down.c.depth + 1).where(is_child))


def is_in(down: sa.CTE | sa.Subquery) -> sa.ColumnElement[bool]:
    """Build the condition that joins `nodes` to the rows of a recursion by the whole primary key.

    With a condition on the kind of `nodes` alone, SQLite would read all nodes of the kind and look for each in the recursion.
    """
    return sa.and_(_c.kind == down.c.kind, _c.id == down.c.id)


BELOW = _below()
_SUBTREE = Statement(sa.select(BELOW.c.id).where(BELOW.c.depth > 0).order_by(BELOW.c.depth, BELOW.c.id))
_DELETE = Statement(sa.delete(nodes).where(NodeIdIn(_c.id, "ids")))


def find_descendants(tx: Transaction, kind: str, root: int) -> list[int]:
    """Return the ids of all descendants of a node, parents before their children."""
    return [row[0] for row in tx.fetch(_SUBTREE, kind=kind, root=root)]


BATCH: Final = 2000  # rows that are inserted, deleted or restored together: few enough to report progress after each batch
AT_ONCE: Final = 100  # nodes, or events, that one statement reads: a few dozen MB with the longest texts


def split_into_batches(ids: Sequence[T], size: int | None = None) -> Iterator[Sequence[T]]:
    """Split a list of ids, or of rows, into batches, in order."""
    size = size or BATCH
    return (ids[first : first + size] for first in range(0, len(ids), size))


def delete_subtree(
    tx: Transaction,
    kind: str,
    node: Node,
    below: Sequence[int] | None = None,
    before_batch: Callable[[Sequence[int]], None] = lambda _ids: None,
) -> int:
    """Delete a node with its descendants, and close the gap among its siblings; return the number of nodes deleted.

    `below` are its descendants as `find_descendants` returns them, if the caller has read them. The nodes are deleted in batches,
    the deepest first, since the foreign key requires children to be deleted before their parent; `before_batch` is called with the
    ids of each batch.
    """
    slot = siblings.find_slot(tx, kind, node.id)
    deleted = [node.id, *(find_descendants(tx, kind, node.id) if below is None else below)]
    for ids in split_into_batches(deleted[::-1]):
        before_batch(ids)
        tx.execute(_DELETE, kind=kind, ids=tx.id_list(ids))
    if len(deleted) > 1:
        siblings.delete_blocks(tx, kind, deleted)
    siblings.detach(tx, kind, node.parent_id, slot)
    add_to_total(tx, kind, -len(deleted))
    deleted_ids.record_deleted(tx, kind, deleted)
    return len(deleted)


def delete_rows(tx: Transaction, kind: str, ids: Sequence[int]) -> None:
    """Delete only the rows of nodes, in this order; children must come before their parents."""
    for batch in split_into_batches(ids):
        tx.execute(_DELETE, kind=kind, ids=tx.id_list(batch))


# --- writing one node ---------------------------------------------------------------------------------------------

_FEW: Final = 64  # nodes, for which any plan is fast
_KNOWN = Statement(sa.text("SELECT reltuples FROM pg_class WHERE oid = 'nodes'::regclass"))  # -1 if the table was never analysed
_INSERT = Statement(sa.insert(nodes).values({column.name: bindparam(column.name) for column in nodes.columns}))


def insert(tx: Transaction, kind: str, node: Node, position: int | None = None) -> Node:
    """Insert a node at a position among its siblings, or at the end (None); return it with its position.

    Its id must come from `counters.next_numbers`, which has counted it in the total; its own `position` is ignored.
    """
    return insert_siblings(tx, kind, [node], position)[0]


def _count_inserted(tx: Transaction, more: int) -> None:
    """Let PostgreSQL analyse `nodes` if it knows of fewer nodes than were inserted, which is checked at each fourfold number.

    PostgreSQL plans a statement for the size that a table has at the time, and keeps the plan: one made for a few nodes reads all
    nodes of a kind to find one. Autovacuum would analyse the table too, but a minute later and not within a transaction.
    """
    before, tx.inserted = tx.inserted, tx.inserted + more
    if tx.sqlite or tx.inserted < _FEW or before.bit_length() // 2 == tx.inserted.bit_length() // 2:
        return
    if tx.fetch(_KNOWN)[0][0] < tx.inserted:
        tx.raw.execute("ANALYZE (SKIP_LOCKED) nodes")  # if locked: a vacuum that is running does the same


def insert_siblings(tx: Transaction, kind: str, new: Sequence[Node], position: int | None = None) -> list[Node]:
    """Insert nodes with the same parent side by side: the first at a position, or all at the end (None). See `insert`."""
    placed: list[Node] = []
    for slots, first in siblings.attach_many(tx, kind, new[0].parent_id, position, len(new)):
        those = new[len(placed) : len(placed) + len(slots)]
        tx.execute_many(_INSERT, [_values(kind, node, slot) for node, slot in zip(those, slots, strict=True)])
        _count_inserted(tx, len(those))
        placed += [replace(node, position=first + n) for n, node in enumerate(those)]
    return placed


def _values(kind: str, node: Node, slot: Slot) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": node.id,
        "parent_id": node.parent_id,
        "block": slot.block,
        "block_offset": slot.offset,
        "created_at": node.created_at,
        **_content(node),
    }


def _content(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "name_key": fold_name(node.name),
        "fields": Transaction.encode(node.fields),
        "permissions": Transaction.encode(node.permissions),
        "updated_at": node.updated_at,
        "external_id": node.external_id,
        "managed_by": node.managed_by,
    }


def insert_descendants(tx: Transaction, kind: str, batches: Iterable[Sequence[Node]]) -> None:
    """Insert many nodes, whose ids must come from `counters.next_numbers`, batch by batch, parents before their children.

    Their parents must be new too and have no other children: siblings have the positions 0…n-1, which are kept.
    """
    parents: set[int | None] = set()
    for batch in batches:
        parents.update(node.parent_id for node in batch)
        tx.execute_many(_INSERT, [_values(kind, node, Slot(0, node.position)) for node in batch])
        _count_inserted(tx, len(batch))
    siblings.build_blocks(tx, kind, parents)


_CHANGEABLE: Final = ("name", "name_key", "fields", "permissions", "updated_at", "external_id", "managed_by")
_UPDATE = Statement(
    sa.update(nodes).where(_KIND, _c.id == bindparam("node")).values({name: bindparam("new_" + name) for name in _CHANGEABLE})
)


def update(tx: Transaction, kind: str, node: Node) -> None:
    """Write everything of a node except its parent and position, which stay the same."""
    tx.execute(_UPDATE, **_changed_values(kind, node))


def update_many(tx: Transaction, kind: str, changed: Iterable[Node]) -> None:
    """Write everything of some nodes except their parents and positions, which stay the same."""
    tx.execute_many(_UPDATE, [_changed_values(kind, node) for node in changed])


def _changed_values(kind: str, node: Node) -> dict[str, Any]:
    return {"kind": kind, "node": node.id} | {"new_" + name: value for name, value in _content(node).items()}


def fold_name(name: str) -> str:
    """Return the form of a name that is used for sorting and searching: case-folded."""
    return name.casefold()


_LAST: Final = "\U0010ffff"  # comes after every other character in the order of names
_BEGINNING = Statement(
    sa.select(*COLUMNS)
    .where(_c.kind == bindparam("kind"), _c.name_key >= bindparam("first"), _c.name_key < bindparam("last"))
    .order_by(_c.name_key, _c.id)
    .limit(bindparam("limit", type_=sa.Integer))
)


def find_beginning_with(tx: Transaction, kind: str, folded: str, limit: int) -> list[Node]:
    """Read nodes of a kind whose folded names begin with a text, by name, at most `limit`: an exact match comes first."""
    rows = tx.fetch(_BEGINNING, kind=kind, first=folded, last=folded + _LAST, limit=limit)
    return [decode_node(row, tx) for row in rows]


_MENTIONING = Statement(
    sa.select(_c.kind, _c.id)
    .where(sa.or_(MentionsNumber(_c.permissions, "group"), MentionsNumber(_c.fields, "group")))
    .order_by(_c.kind, _c.id)
)


def list_mentioning_group(tx: Transaction, group: int) -> list[tuple[str, int]]:
    """List the nodes, of all kinds, whose permissions or fields contain a group's id, or a number that equals it: (kind, id)."""
    return [(row[0], row[1]) for row in tx.fetch(_MENTIONING, group=group)]


def walk(tx: Transaction, keys: Iterable[tuple[str, int]]) -> Iterator[tuple[str, Node]]:
    """Read nodes of any kinds in the order of `keys`, as (kind, node), some at a time: they may have very long texts."""
    for kind, some in groupby(keys, itemgetter(0)):
        for ids in split_into_batches([number for _, number in some], AT_ONCE):
            found = find_by_ids(tx, kind, ids)
            yield from ((kind, found[number]) for number in ids if number in found)


_ALL_IDS = Statement(sa.select(_c.id).where(_KIND))


def find_all_ids(tx: Transaction, kind: str) -> set[int]:
    """Return the ids of all nodes of a kind."""
    return {row[0] for row in tx.fetch(_ALL_IDS, kind=kind)}


def find_all(tx: Transaction, kind: str) -> list[Node]:
    """Read all nodes of a kind, by id."""
    statement = sa.select(*COLUMNS).where(_c.kind == kind).order_by(_c.id)
    return [decode_node(tuple(row), tx) for row in tx.connection.execute(statement)]
