"""Rows as they were before an event deleted or changed them. They hold digests of passwords: no door shows them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import siblings
from trellis.store.counters import add
from trellis.store.engine import Among, AmongOf, Row, Statement, Transaction
from trellis.store.nodes import Node, deleted_ids, slices
from trellis.store.siblings import PLACE, ZERO, Family, between
from trellis.store.tables import JSON, NUMBER, PLAIN, counters, events, nodes, snapshots

How = Literal["deleted", "moved", "changed"]

_c, _s = nodes.c, snapshots.c
_KIND = _c.kind == bindparam("kind")
_NAMES = tuple(column.name for column in snapshots.columns)
_CONTENT = (_c.name, _c.name_key, _c.fields, _c.permissions, _c.created_at, _c.updated_at)


@dataclass(slots=True)
class Snapshot:
    """A row before event `seq`. `beside` has its neighbours then, nearest first, or, for one that was moved, where `to`."""

    seq: int
    kind: str
    how: How
    node: Node
    beside: Mapping[str, Any]


# --- keeping ------------------------------------------------------------------------------------------------------


def _keeping(rows: sa.Select[Any]) -> Statement:
    return Statement(sa.insert(snapshots).from_select(list(_NAMES), rows))


def _head() -> tuple[sa.ColumnElement[Any], ...]:
    return bindparam("seq", type_=NUMBER), _c.kind, _c.id, bindparam("how", type_=PLAIN)


_BESIDE = bindparam("beside", type_=JSON)
_PLACE = (bindparam("from_parent", type_=NUMBER), bindparam("from_position", type_=NUMBER))
_KEPT = sa.exists().where(_s.seq == bindparam("seq"), _s.kind == bindparam("kind"), _s.id == bindparam("node"))
_KEEP = _keeping(sa.select(*_head(), *_PLACE, *_CONTENT, _BESIDE).where(_KIND, _c.id == bindparam("node"), ~_KEPT))
_AS_IT_STANDS = sa.select(*_head(), _c.parent_id, PLACE, *_CONTENT, _BESIDE)
_KEEP_THESE = _keeping(_AS_IT_STANDS.where(_KIND, AmongOf(_c.id, "ids")))
_KEEP_CHILDREN = _keeping(_AS_IT_STANDS.where(_KIND, _c.parent_id == bindparam("parent")))


def keep(tx: Transaction, kind: str, node: Node, how: How, beside: Mapping[str, Any] | None = None) -> None:
    """Keep a row for the event that this transaction is about to leave, once.

    Its place is that of `node`, in case it has been moved already; all else is as the row stands.
    """
    tx.change(
        _KEEP,
        seq=_coming(tx),
        kind=kind,
        node=node.id,
        how=how,
        from_parent=node.parent_id,
        from_position=node.position,
        beside=None if beside is None else tx.encoded(beside),
    )


def keep_these(tx: Transaction, kind: str, ids: Sequence[int]) -> None:
    """Keep some rows, none of which is kept yet, that are about to be deleted."""
    tx.change(_KEEP_THESE, seq=_coming(tx), kind=kind, ids=tx.ids(ids), how="deleted", beside=None)


def keep_children(tx: Transaction, kind: str, parent: int, to: int) -> None:
    """Keep the rows of a node's children, which are about to move under another."""
    tx.change(_KEEP_CHILDREN, seq=_coming(tx), kind=kind, parent=parent, how="moved", beside=tx.encoded({"to": to}))


def beside(tx: Transaction, kind: str, node: Node) -> dict[str, list[int]]:
    """Give the nearest siblings before and behind a node, the nearest first."""
    rows = between(tx, kind, node.parent_id, node.position - _REACH, node.position + _REACH)
    before = [sibling for sibling, place in reversed(rows) if place < node.position]
    return {"before": before, "behind": [sibling for sibling, place in rows if place > node.position]}


_REACH: Final = 5  # siblings on either side by which undo finds a place again


_LAST_EVENT = Statement(sa.select(counters.c.last).where(counters.c.name == "events"))


def _coming(tx: Transaction) -> int:
    """Give the number that the event of this transaction will have: writes come one at a time."""
    rows = tx.rows(_LAST_EVENT)
    return int(rows[0][0]) + 1 if rows else 1


# --- finding ------------------------------------------------------------------------------------------------------

_COLUMNS = (
    *(_s.seq, _s.kind, _s.how, _s.beside),
    *(_s.id, _s.parent_id, _s.position, _s.name, _s.fields, _s.permissions, _s.created_at, _s.updated_at),
)
_IN_ORDER = (_s.position, _s.kind, _s.id)
_OF_EVENT = Statement(sa.select(*_COLUMNS).where(_s.seq == bindparam("seq")).order_by(*_IN_ORDER))
_AND_NOT_BELOW = sa.or_(_s.how != "deleted", _s.id == bindparam("root"))
_ABOVE_ALL = Statement(sa.select(*_COLUMNS).where(_s.seq == bindparam("seq"), _AND_NOT_BELOW).order_by(*_IN_ORDER))
_THESE = (_s.seq == bindparam("seq"), _s.kind == bindparam("kind"), Among(_s.id, "ids"))
_OF_THESE = Statement(sa.select(*_COLUMNS).where(*_THESE))
_OF_RECORD = sa.select(*_COLUMNS).where(_s.kind == bindparam("kind"), _s.id == bindparam("node"), _s.seq > bindparam("behind"))
_FOLLOWING = Statement(_OF_RECORD.order_by(_s.seq).limit(1))
_LATEST = Statement(_OF_RECORD.order_by(_s.seq.desc()).limit(1))


def of_event(tx: Transaction, seq: int) -> list[Snapshot]:
    """Read every row that an event deleted or changed, by their places."""
    return [_snapshot(row, tx) for row in tx.rows(_OF_EVENT, seq=seq)]


def without_below(tx: Transaction, seq: int, root: int) -> list[Snapshot]:
    """Read the rows that an event deleted or changed, by their places, but not those deleted with the record `root`."""
    return [_snapshot(row, tx) for row in tx.rows(_ABOVE_ALL, seq=seq, root=root)]


def of_these(tx: Transaction, seq: int, kind: str, ids: Sequence[int]) -> list[Snapshot]:
    """Read some of the rows that an event deleted or changed."""
    return [_snapshot(row, tx) for row in tx.rows(_OF_THESE, seq=seq, kind=kind, ids=tx.ids(ids))]


def counts(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Count the rows that are kept of each of some events."""
    if not seqs:
        return {}
    counted = sa.select(_s.seq, sa.func.count()).where(_s.seq.in_(seqs)).group_by(_s.seq)
    return {row[0]: row[1] for row in tx.connection.execute(counted)}


def names(tx: Transaction, seq: int, kind: str, ids: Collection[int]) -> dict[int, tuple[int | None, str]]:
    """Give the parents and the names that some rows of a kind had before an event, by id."""
    rows = sa.select(_s.id, _s.parent_id, _s.name).where(_s.seq == seq, _s.kind == kind, _s.id.in_(ids))
    return {number: (parent, name) for number, parent, name in tx.connection.execute(rows)}


def following(tx: Transaction, kind: str, node: int, seq: int) -> Snapshot | None:
    """Read a row as the first event behind `seq` that touched it found it; None if none has touched it since."""
    rows = tx.rows(_FOLLOWING, kind=kind, node=node, behind=seq)
    return _snapshot(rows[0], tx) if rows else None


def since(tx: Transaction, kind: str, node: int, seq: int, most: int) -> list[int]:
    """Give the newest events behind `seq` that found a row and changed it, the newest first."""
    behind = sa.select(_s.seq).where(_s.kind == kind, _s.id == node, _s.seq > seq).order_by(_s.seq.desc()).limit(most)
    return list(tx.connection.execute(behind).scalars())


def _first_of_each() -> Statement:
    ours = (_s.kind == bindparam("kind"), Among(_s.id, "ids"), _s.seq > bindparam("behind"))
    first = sa.select(_s.id, sa.func.min(_s.seq).label("seq")).where(*ours).group_by(_s.id).subquery()
    on = sa.and_(_s.kind == bindparam("kind"), _s.id == first.c.id, _s.seq == first.c.seq)
    return Statement(sa.select(*_COLUMNS).select_from(first.join(snapshots, on)))


_FIRST_OF_EACH = _first_of_each()


def following_these(tx: Transaction, kind: str, ids: Sequence[int], seq: int) -> dict[int, Snapshot]:
    """Read some rows as the first event behind `seq` that touched each found it; those that none has touched are left out."""
    return {row[4]: _snapshot(row, tx) for row in tx.rows(_FIRST_OF_EACH, kind=kind, ids=tx.ids(ids), behind=seq)}


def latest(tx: Transaction, kind: str, node: int) -> Snapshot | None:
    """Read a row as the last event that touched it found it."""
    rows = tx.rows(_LATEST, kind=kind, node=node, behind=0)
    return _snapshot(rows[0], tx) if rows else None


def _snapshot(row: Row, tx: Transaction) -> Snapshot:
    node = Node(row[4], row[5], row[6], row[7], tx.decoded(row[8]), tx.decoded(row[9]), row[10], row[11])
    return Snapshot(row[0], row[1], row[2], node, tx.decoded(row[3]) or {})


# --- bringing back ------------------------------------------------------------------------------------------------


def _bringing_back() -> tuple[Statement, Statement]:
    is_root = _s.id == bindparam("root", type_=NUMBER)
    stood = {
        "parent_id": sa.case((is_root, bindparam("to", type_=NUMBER)), else_=_s.parent_id),
        "shelf": sa.case((is_root, bindparam("shelf", type_=NUMBER)), else_=ZERO),
        "position": sa.case((is_root, bindparam("at", type_=NUMBER)), else_=_s.position),
    }
    deleted = (_s.seq == bindparam("seq"), _s.kind == bindparam("kind"), _s.how == "deleted")
    columns = [column.name for column in nodes.columns]
    rows = sa.select(*(stood[name] if name in stood else _s[name] for name in columns)).where(*deleted, Among(_s.id, "ids"))
    below = sa.select(_s.parent_id, sa.func.count()).where(*deleted, ~is_root).group_by(_s.parent_id)
    many = below.having(sa.func.count() > bindparam("few"))
    return Statement(sa.insert(nodes).from_select(columns, rows)), Statement(many)


_BRING_BACK, _MANY = _bringing_back()


def bring_back(
    tx: Transaction,
    seq: int,
    kind: str,
    root: Node,
    wanted: int | None,
    below: Sequence[int] = (),
    back: Callable[[Sequence[int]], None] = lambda _ids: None,
) -> None:
    """Put the rows that an event deleted back as they were, byte for byte, in slices; `back` is told of each.

    `root` says under which parent, and `wanted` in which place there; None is behind the last one. `below` are all others that
    were deleted with it, parents before their children.
    """
    spot, _ = Family(tx, kind, root.parent_id).enter(wanted)
    given = {"seq": seq, "kind": kind, "root": root.id}
    coming = [root.id, *below]
    for ids in slices(coming):
        tx.change(_BRING_BACK, **given, to=root.parent_id, shelf=spot.shelf, at=spot.at, ids=tx.ids(ids))
        back(ids)
    for parent, children in tx.rows(_MANY, **given, few=siblings.CAPACITY):
        Family(tx, kind, parent).deal_out(children)
    add(tx, kind, len(coming))
    deleted_ids.close_up(tx, kind, coming)


# --- how long -----------------------------------------------------------------------------------------------------


def oldest(tx: Transaction) -> int | None:
    """Give the oldest event of which rows are kept."""
    found: int | None = tx.connection.execute(sa.select(sa.func.min(_s.seq))).scalar_one()
    return found


def total(tx: Transaction) -> int:
    """Count the rows that are kept."""
    return int(tx.connection.execute(sa.select(sa.func.count()).select_from(snapshots)).scalar_one())


def purge(tx: Transaction, before: str, most: int = 5000) -> int:
    """Delete the rows of events that are older than `before`, the oldest first, at most `most`; give their number.

    An event of which some rows are gone can no longer be undone; the rows of all later ones are still whole.
    """
    first = oldest(tx)
    if first is None:
        return 0
    walk = sa.select(events.c.seq, events.c.at).where(events.c.seq >= first).order_by(events.c.seq).limit(most)
    coming = tx.connection.execute(walk).all()
    bound = coming[0][0] - 1 if coming else _coming(tx)  # where the event itself is gone already
    for seq, at in coming:
        if at >= before:
            break
        bound = seq
    key = (_s.seq, _s.kind, _s.id)
    stale = sa.select(*key).where(_s.seq <= bound).order_by(*key).limit(most)
    return tx.connection.execute(sa.delete(snapshots).where(sa.tuple_(*key).in_(stale))).rowcount
