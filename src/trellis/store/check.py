"""What `trellis check` asks of the rows: every node as it is kept, the shape of the trees, the counters and the log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import siblings
from trellis.store.engine import Among, Row, Statement, Transaction
from trellis.store.siblings import PLACE, UNSHELVED, Family, Shelf, Spot, count, sound, under, with_parent
from trellis.store.tables import counters, events, keys, nodes, shelves

_BATCH: Final = 2000
_c, _s = nodes.c, shelves.c
_KIND = _c.kind == bindparam("kind")


@dataclass(slots=True)
class Stored:
    """A node as it is kept. `fields` and `permissions` are None where they are no JSON objects."""

    id: int
    parent_id: int | None
    position: int
    name: str
    name_key: str
    fields: dict[str, Any] | None
    permissions: dict[str, Any] | None
    created_at: str
    updated_at: str


_COLUMNS = (
    _c.id,
    _c.parent_id,
    PLACE,
    _c.name,
    _c.name_key,
    _c.fields,
    _c.permissions,
    _c.created_at,
    _c.updated_at,
)
_FOLLOWING = Statement(
    sa.select(*_COLUMNS).where(_KIND, _c.id > bindparam("behind")).order_by(_c.id).limit(bindparam("most", type_=sa.Integer))
)


def batches(tx: Transaction, kind: str) -> Iterator[list[Stored]]:
    """Read all nodes of a kind by id, a few thousand at a time; each batch sees what was changed since the last."""
    behind = -(2**63)
    while rows := tx.rows(_FOLLOWING, kind=kind, behind=behind, most=_BATCH):
        yield [_stored(row) for row in rows]
        behind = rows[-1][0]


def _stored(row: Row) -> Stored:
    return Stored(row[0], row[1], row[2], row[3], row[4], _object(row[5]), _object(row[6]), row[7], row[8])


def _object(column: Any) -> dict[str, Any] | None:
    try:
        value = Transaction.decoded(column)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def sizes(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Count the rows of each kind that there are rows of, and give the highest id: kind → (count, highest)."""
    counted = sa.select(_c.kind, sa.func.count(), sa.func.max(_c.id)).group_by(_c.kind)
    return {kind: (count, highest) for kind, count, highest in tx.connection.execute(counted)}


def ids_of(tx: Transaction, kind: str) -> set[int]:
    """Give the ids of all nodes of a kind."""
    return set(tx.connection.execute(sa.select(_c.id).where(_c.kind == kind)).scalars())


# --- the trees ----------------------------------------------------------------------------------------------------


def orphans(tx: Transaction, kind: str) -> list[tuple[int, int]]:
    """Find the nodes whose parent does not exist: pairs of id and the parent's."""
    parent = nodes.alias()
    found = (
        sa.select(_c.id, _c.parent_id)
        .select_from(nodes.outerjoin(parent, sa.and_(parent.c.kind == _c.kind, parent.c.id == _c.parent_id)))
        .where(_c.kind == kind, _c.parent_id.is_not(None), parent.c.id.is_(None))
        .order_by(_c.id)
    )
    return [(row[0], row[1]) for row in tx.connection.execute(found)]


def unreachable(tx: Transaction, kind: str) -> dict[int, int]:
    """Find the nodes that no way leads to from the top level: id → the parent's."""
    down = sa.select(_c.id).where(_c.kind == kind, _c.parent_id.is_(None)).cte("down", recursive=True)
    child = nodes.alias()
    down = down.union_all(sa.select(child.c.id).where(child.c.kind == kind, child.c.parent_id == down.c.id))
    # A join, not NOT IN: PostgreSQL would look through the whole list for each row once it outgrows its working memory.
    beside = nodes.outerjoin(down, down.c.id == _c.id)
    found = sa.select(_c.id, _c.parent_id).select_from(beside).where(_c.kind == kind, down.c.id.is_(None)).order_by(_c.id)
    return {row[0]: row[1] for row in tx.connection.execute(found)}


def nested(tx: Transaction, kind: str) -> list[tuple[int, int]]:
    """Find the nodes that have a parent: pairs of id and the parent's."""
    found = sa.select(_c.id, _c.parent_id).where(_c.kind == kind, _c.parent_id.is_not(None)).order_by(_c.id)
    return [(row[0], row[1]) for row in tx.connection.execute(found)]


_UNDER = Statement(sa.select(_c.id, _c.parent_id).where(_KIND, Among(_c.parent_id, "parents")).order_by(_c.id))


def children_of(tx: Transaction, kind: str, parents: Sequence[int]) -> list[tuple[int, int]]:
    """Find the children of any of these nodes: pairs of id and the parent's."""
    return [(row[0], row[1]) for row in tx.rows(_UNDER, kind=kind, parents=tx.ids(list(parents)))] if parents else []


def uneven(tx: Transaction, kind: str) -> list[tuple[int | None, int]]:
    """Find the parents whose children are not in places 0…n-1: pairs of the parent's id and n. None is the top level.

    Of many children the shelves must be sound too. n is 0 where shelves are kept for children that there are not.
    """
    families = _shelves(tx, kind)
    wrong: dict[int, int] = {}
    standing: dict[int, dict[int, int]] = {parent: {} for parent in families}
    for parent, shelf, standing_there, dense in _standing(tx, kind):
        if parent in families and shelf and dense:
            standing[parent][shelf] = standing_there
        elif parent in families or shelf or not dense:
            wrong[parent] = 0
    wrong |= {parent: 0 for parent, kept in families.items() if not sound(kept, standing[parent])}
    return [(parent or None, _number_of(tx, kind, parent or None)) for parent in sorted(wrong)]


def _shelves(tx: Transaction, kind: str) -> dict[int, list[Shelf]]:
    found: dict[int, list[Shelf]] = {}
    columns = (_s.parent_id, _s.id, _s.level, _s.above, _s.before, _s.size)
    for parent, *shelf in tx.connection.execute(sa.select(*columns).where(_s.kind == kind)):
        found.setdefault(parent, []).append(Shelf(*shelf))
    return found


def _standing(tx: Transaction, kind: str) -> Iterator[tuple[int, int, int, bool]]:
    """Count who stands on each shelf, and say whether they are numbered 0…n-1; families of few are left out if they are."""
    parent, many = sa.func.coalesce(_c.parent_id, 0), sa.func.count()
    low, high, different = sa.func.min(_c.position), sa.func.max(_c.position), sa.func.count(sa.distinct(_c.position))
    dense = sa.and_(low == 0, high == many - 1, different == many)
    on_shelves = parent.in_(sa.select(_s.parent_id).where(_s.kind == kind))
    found = (
        sa.select(parent, _c.shelf, many, dense)
        .where(_c.kind == kind)
        .group_by(_c.parent_id, _c.shelf)
        .having(sa.or_(~dense, _c.shelf != 0, on_shelves))
    )
    for whose, shelf, number, numbered in tx.connection.execute(found):
        yield whose, shelf, number, bool(numbered)


def _number_of(tx: Transaction, kind: str, parent: int | None) -> int:
    found = sa.select(sa.func.count()).where(under(parent is None))
    return int(tx.connection.execute(found, {"kind": kind, **with_parent(parent)}).scalar_one())


def renumber(tx: Transaction, kind: str, parent: int | None) -> None:
    """Number the children of a parent 0…n-1 in the order in which they stand; ids decide between equals."""
    family = Family(tx, kind, parent)
    found = sa.select(_c.id, _c.shelf, _c.position).where(under(parent is None)).order_by(PLACE, _c.id)
    standing = tx.connection.execute(found, {"kind": kind, **with_parent(parent)}).all()
    for at, (node, shelf, position) in enumerate(standing):
        if (shelf, position) != (0, at):
            family.put(node, Spot(0, at))
    tx.connection.execute(sa.delete(shelves).where(_s.kind == kind, _s.parent_id == (parent or 0)))  # those astray too
    if len(standing) > siblings.CAPACITY:
        family.deal_out(len(standing))


def to_top(tx: Transaction, kind: str, node: int) -> None:
    """Put a node behind all others at the top level; `renumber` is to follow where it came from, and where many stand there."""
    last = sa.select(sa.func.coalesce(sa.func.max(_c.position), -1)).where(under(top=True), UNSHELVED)  # there may be gaps
    behind = int(tx.connection.execute(last, {"kind": kind}).scalar_one()) + 1
    Family(tx, kind, None).put(node, Spot(0, max(behind, count(tx, kind, None))))


# --- counters, events, keys and the file --------------------------------------------------------------------------


def counted(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Read the counters: name → (last number given out, total)."""
    return {name: (last, total) for name, last, total in tx.connection.execute(sa.select(counters))}


def count_anew(tx: Transaction, name: str, last: int, total: int) -> None:
    """Set a counter, whether it is there or not."""
    values = {"last": last, "total": total}
    if not tx.connection.execute(sa.update(counters).where(counters.c.name == name).values(values)).rowcount:
        tx.connection.execute(sa.insert(counters).values(values | {"name": name}))


def highest_key(tx: Transaction) -> int:
    """Give the highest id of a key; 0 without keys."""
    return int(tx.connection.execute(sa.select(sa.func.coalesce(sa.func.max(keys.c.id), 0))).scalar_one())


def last_event(tx: Transaction) -> int:
    """Give the sequence number of the newest event; 0 without events."""
    return int(tx.connection.execute(sa.select(sa.func.coalesce(sa.func.max(events.c.seq), 0))).scalar_one())


def missing_events(tx: Transaction, most: int) -> list[tuple[int, int]]:
    """Find the gaps between the first and the last event, at most so many: pairs of first and last missing number."""
    following = sa.func.lead(events.c.seq).over(order_by=events.c.seq)
    pairs = sa.select(events.c.seq.label("here"), following.label("next")).subquery()
    gaps = sa.select(pairs.c.here + 1, pairs.c.next - 1).where(pairs.c.next != pairs.c.here + 1).order_by(pairs.c.here).limit(most)
    return [(row[0], row[1]) for row in tx.connection.execute(gaps)]


def damage(tx: Transaction, most: int) -> list[str]:
    """Have SQLite look through its file; give what it finds, at most so much. PostgreSQL watches over its own."""
    if not tx.sqlite:
        return []
    found = [str(row[0]) for row in tx.raw.execute(f"PRAGMA quick_check({most})").fetchall()]
    return [] if found == ["ok"] else found
