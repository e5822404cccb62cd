"""The rows of snapshots: saving, finding, restoring and purging them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import siblings
from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.counters import add_to_total, last_number
from trellis.store.engine import IdIn, NodeIdIn, Row, Statement, Transaction
from trellis.store.nodes import AT_ONCE, Node, decode_node, deleted_ids, split_into_batches
from trellis.store.siblings import POSITION
from trellis.store.tables import events, nodes, snapshots

Change = Literal["deleted", "moved", "changed"]

_c, _s = nodes.c, snapshots.c
_KIND = _c.kind == bindparam("kind")
_COLUMN_NAMES = tuple(column.name for column in snapshots.columns)
_CONTENT = (_c.name, _c.name_key, _c.fields, _c.permissions, _c.created_at, _c.updated_at)
NEIGHBOURS: Final = 5  # siblings on either side that are saved for undo to find the position


@dataclass(slots=True)
class Snapshot:
    """A row as it was before event `seq`, and what the event did to it.

    Undo finds the position from `neighbours`: `before` and `behind` list sibling ids, nearest first. For a row that was
    moved with its siblings, `neighbours` has only `to`, the parent that they moved to.
    """

    seq: int
    kind: str
    change: Change
    node: Node
    neighbours: Mapping[str, Any]


# --- saving -------------------------------------------------------------------------------------------------------


def _insert_from(rows: sa.Select[Any]) -> Statement:
    return Statement(sa.insert(snapshots).from_select(list(_COLUMN_NAMES), rows))


def _key_and_change() -> tuple[sa.ColumnElement[Any], ...]:
    return bindparam("seq", type_=NUMBER), _c.kind, _c.id, bindparam("change", type_=PLAIN)


_NEIGHBOURS_PARAM = bindparam("neighbours", type_=JSON)
_OLD_PLACE = (bindparam("old_parent", type_=NUMBER), bindparam("old_position", type_=NUMBER))
_BEHIND = (_NEIGHBOURS_PARAM, _c.external_id, _c.managed_by)
_IS_SAVED = sa.exists().where(_s.seq == bindparam("seq"), _s.kind == bindparam("kind"), _s.id == bindparam("node"))
_SAVE = _insert_from(
    sa.select(*_key_and_change(), *_OLD_PLACE, *_CONTENT, *_BEHIND).where(_KIND, _c.id == bindparam("node"), ~_IS_SAVED)
)
_AS_IT_IS = sa.select(*_key_and_change(), _c.parent_id, POSITION, *_CONTENT, *_BEHIND)
_SAVE_BY_IDS = _insert_from(_AS_IT_IS.where(NodeIdIn(_c.id, "ids")))
_SAVE_CHILDREN = _insert_from(_AS_IT_IS.where(_KIND, _c.parent_id == bindparam("parent")))


def save(tx: Transaction, kind: str, node: Node, change: Change, neighbours: Mapping[str, Any] | None = None) -> None:
    """Save a row for the event that this transaction is about to append, unless the row has been saved for it already.

    Parent and position are taken from `node`, since the row may have been moved already; everything else is read from the row.
    """
    save_many(tx, kind, [(node, neighbours)], change)


def save_many(tx: Transaction, kind: str, rows: Sequence[tuple[Node, Mapping[str, Any] | None]], change: Change) -> None:
    """Save rows, each with its neighbours and for an event of its own: the next ones of this transaction, in the same order.

    See `save`.
    """
    params = [
        _values(seq, kind, node.id, change, (node.parent_id, node.position), None if beside is None else tx.encode(beside))
        for seq, (node, beside) in enumerate(rows, _next_event(tx))
    ]
    tx.execute_many(_SAVE, params)


def save_moved(tx: Transaction, kind: str, parent: int | None, positions: Mapping[int, int], to: int) -> None:
    """Save children of a node that are about to move to another one; `positions` maps their ids to their positions. See `save`."""
    seq, neighbours = _next_event(tx), tx.encode({"to": to})
    params = [_values(seq, kind, node, "moved", (parent, position), neighbours) for node, position in positions.items()]
    tx.execute_many(_SAVE, params)


def _values(
    seq: int, kind: str, node: int, change: Change, place: tuple[int | None, int], neighbours: str | None
) -> dict[str, Any]:
    parent, position = place
    return {
        "seq": seq,
        "kind": kind,
        "node": node,
        "change": change,
        "old_parent": parent,
        "old_position": position,
        "neighbours": neighbours,
    }


def save_deleted(tx: Transaction, kind: str, ids: Sequence[int]) -> None:
    """Save rows that are about to be deleted. None of them may have been saved for this event yet."""
    tx.execute(_SAVE_BY_IDS, seq=_next_event(tx), kind=kind, ids=tx.id_list(ids), change="deleted", neighbours=None)


def save_moved_children(tx: Transaction, kind: str, parent: int, to: int) -> None:
    """Save the children of a node, which are about to move to another one."""
    neighbours = tx.encode({"to": to})
    tx.execute(_SAVE_CHILDREN, seq=_next_event(tx), kind=kind, parent=parent, change="moved", neighbours=neighbours)


def find_neighbours(tx: Transaction, kind: str, node: Node) -> dict[str, list[int]]:
    """Return the siblings `before` and `behind` a node, nearest first, at most five each."""
    first, last = node.position - NEIGHBOURS, node.position + NEIGHBOURS
    rows = siblings.read_range(tx, kind, node.parent_id, first, last, (_c.id, POSITION))
    before = [sibling for sibling, position in reversed(rows) if position < node.position]
    return {"before": before, "behind": [sibling for sibling, position in rows if position > node.position]}


def _next_event(tx: Transaction) -> int:
    """Return the sequence number of the next event of this transaction. It is certain, since there is one writer at a time."""
    return last_number(tx, "events") + 1


# --- finding ------------------------------------------------------------------------------------------------------

_COLUMNS = (_s.seq, _s.kind, _s.change, _s.neighbours, *(_s[field.name] for field in fields(Node)))
_IS_SEQ, _IS_KIND, _IS_CHANGE = (_s[name] == bindparam(name) for name in ("seq", "kind", "change"))
_KEYS = Statement(sa.select(_s.kind, _s.id).where(_IS_SEQ, _IS_CHANGE).order_by(_s.position, _s.kind, _s.id))
_PLACES = Statement(
    sa.select(_s.id, _s.parent_id, _s.position, _s.neighbours).where(_IS_SEQ, _IS_KIND, _IS_CHANGE).order_by(_s.position, _s.id)
)
_EXTERNAL_IDS = Statement(sa.select(_s.external_id).where(_IS_SEQ, _IS_KIND, IdIn(_s.id, "ids")))
_BY_IDS = Statement(sa.select(*_COLUMNS).where(_IS_SEQ, _IS_KIND, IdIn(_s.id, "ids")))
_OF_EVENTS = Statement(sa.select(*_COLUMNS).where(IdIn(_s.seq, "seqs"), _IS_KIND, _IS_CHANGE))
_LAST_CHANGES = Statement(sa.select(_s.id, sa.func.max(_s.seq)).where(_IS_KIND, IdIn(_s.id, "ids")).group_by(_s.id))
_OF_NODE = sa.select(*_COLUMNS).where(_IS_KIND, _s.id == bindparam("node"), _s.seq > bindparam("after"))
_NEXT = Statement(_OF_NODE.order_by(_s.seq).limit(1))
_LATEST = Statement(_OF_NODE.order_by(_s.seq.desc()).limit(1))


def list_keys(tx: Transaction, seq: int, change: Change) -> list[tuple[str, int]]:
    """Return the kind and id of all rows to which an event made a change, by position."""
    return [(row[0], row[1]) for row in tx.fetch(_KEYS, seq=seq, change=change)]


def walk(tx: Transaction, seq: int, keys: Sequence[tuple[str, int]]) -> Iterator[Snapshot]:
    """Read rows that an event deleted or changed, in the order of `keys`, some at a time: they may have very long texts."""
    for kind, found in groupby(keys, itemgetter(0)):
        for ids in split_into_batches([number for _, number in found], AT_ONCE):
            rows = {one.node.id: one for one in find_by_ids(tx, seq, kind, ids)}
            yield from (rows[number] for number in ids if number in rows)


class SavedPosition(NamedTuple):
    """Where a node was before an event, and the neighbours that were saved with it."""

    id: int
    parent_id: int | None
    position: int
    neighbours: Mapping[str, Any]


def list_places(tx: Transaction, seq: int, kind: str) -> list[SavedPosition]:
    """Return where the nodes of a kind that an event has moved were before, by position."""
    rows = tx.fetch(_PLACES, seq=seq, kind=kind, change="moved")
    return [SavedPosition(row[0], row[1], row[2], tx.decode(row[3]) or {}) for row in rows]


def list_external_ids(tx: Transaction, seq: int, kind: str, ids: Sequence[int]) -> list[str | None]:
    """Return the external ids that nodes had before an event deleted or changed them."""
    return [row[0] for row in tx.fetch(_EXTERNAL_IDS, seq=seq, kind=kind, ids=tx.id_list(ids))]


_SAVED_SINCE = Statement(
    sa.select(_s.kind, _s.id, _s.updated_at).where(_s.seq > bindparam("after")).order_by(_s.seq, _s.kind, _s.id)
)


def find_saved_since(tx: Transaction, seq: int) -> list[tuple[str, int, str]]:
    """Return the rows that were saved for events after `seq`, by event: kind, id, and their `updated_at` before."""
    return [(row[0], row[1], row[2]) for row in tx.fetch(_SAVED_SINCE, after=seq)]


def find_by_ids(tx: Transaction, seq: int, kind: str, ids: Sequence[int]) -> list[Snapshot]:
    """Read some of the rows that an event deleted or changed."""
    return [_decode(row, tx) for row in tx.fetch(_BY_IDS, seq=seq, kind=kind, ids=tx.id_list(ids))]


def find_of_events(tx: Transaction, kind: str, seqs: Sequence[int], change: Change) -> list[Snapshot]:
    """Read the rows of a kind to which some events made a change."""
    return [_decode(row, tx) for row in tx.fetch(_OF_EVENTS, kind=kind, seqs=tx.id_list(seqs), change=change)]


def find_last_changes(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, int]:
    """Return the last event that changed, moved or deleted each of some nodes: id → event. Nodes without one are left out."""
    return {row[0]: row[1] for row in tx.fetch(_LAST_CHANGES, kind=kind, ids=tx.id_list(ids))}


def count_by_event(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Count the rows saved for each of these events: event → number. Events without rows are left out."""
    if not seqs:
        return {}
    counted = sa.select(_s.seq, sa.func.count()).where(_s.seq.in_(seqs)).group_by(_s.seq)
    return {row[0]: row[1] for row in tx.connection.execute(counted)}


def find_names(tx: Transaction, seq: int, kind: str, ids: Collection[int]) -> dict[int, tuple[int | None, str]]:
    """Read the parents and names that nodes of a kind had before an event: id → (parent's id, name)."""
    rows = sa.select(_s.id, _s.parent_id, _s.name).where(_s.seq == seq, _s.kind == kind, _s.id.in_(ids))
    return {number: (parent, name) for number, parent, name in tx.connection.execute(rows)}


def find_next(tx: Transaction, kind: str, node: int, seq: int) -> Snapshot | None:
    """Read a node as it was before the first event after `seq` that changed it; None if no event has changed it since."""
    rows = tx.fetch(_NEXT, kind=kind, node=node, after=seq)
    return _decode(rows[0], tx) if rows else None


def find_later_events(tx: Transaction, kind: str, node: int, seq: int, most: int) -> list[int]:
    """Return the events after `seq` that changed a node, newest first, at most `most`."""
    later = sa.select(_s.seq).where(_s.kind == kind, _s.id == node, _s.seq > seq).order_by(_s.seq.desc()).limit(most)
    return list(tx.connection.execute(later).scalars())


def _next_of_each() -> Statement:
    changed = (_IS_KIND, IdIn(_s.id, "ids"), _s.seq > bindparam("after"))
    first = sa.select(_s.id, sa.func.min(_s.seq).label("seq")).where(*changed).group_by(_s.id).subquery()
    on = sa.and_(_IS_KIND, _s.id == first.c.id, _s.seq == first.c.seq)
    return Statement(sa.select(*_COLUMNS).select_from(first.join(snapshots, on)))


_NEXT_OF_EACH = _next_of_each()


def find_next_of_each(tx: Transaction, kind: str, ids: Sequence[int], seq: int) -> dict[int, Snapshot]:
    """Read each node as it was before the first event after `seq` that changed it: id → snapshot. Unchanged nodes are left out."""
    return {row[4]: _decode(row, tx) for row in tx.fetch(_NEXT_OF_EACH, kind=kind, ids=tx.id_list(ids), after=seq)}


def find_latest(tx: Transaction, kind: str, node: int) -> Snapshot | None:
    """Read a node as it was before the last event that changed it; None if there is no snapshot of it."""
    rows = tx.fetch(_LATEST, kind=kind, node=node, after=0)
    return _decode(rows[0], tx) if rows else None


def _decode(row: Row, tx: Transaction) -> Snapshot:
    return Snapshot(row[0], row[1], row[2], decode_node(row[4:], tx), tx.decode(row[3]) or {})


# --- restoring ----------------------------------------------------------------------------------------------------


def _insert_deleted(replaced: Mapping[str, sa.ColumnElement[Any]], *which: sa.ColumnElement[bool]) -> Statement:
    deleted = (_IS_KIND, _s.change == "deleted")
    columns = [column.name for column in nodes.columns]
    values = (replaced[name] if name in replaced else _s[name] for name in columns)
    return Statement(sa.insert(nodes).from_select(columns, sa.select(*values).where(*deleted, *which)))


def _restore() -> Statement:
    """Insert the nodes `:ids` as they were before event `:seq` deleted them, but the node `:root` under the parent `:to`.

    The root gets the slot that `siblings.attach` returned. The others are inserted with their positions as offsets in block 0. All
    their siblings were deleted with them, so these offsets have no gaps, and `siblings.build_blocks` can follow.
    """
    is_root = _s.id == bindparam("root", type_=NUMBER)
    replaced = {
        "parent_id": sa.case((is_root, bindparam("to", type_=NUMBER)), else_=_s.parent_id),
        "block": sa.case((is_root, bindparam("new_block", type_=NUMBER)), else_=sa.literal_column("0", NUMBER)),
        "block_offset": sa.case((is_root, bindparam("new_offset", type_=NUMBER)), else_=_s.position),
    }
    return _insert_deleted(replaced, _IS_SEQ, IdIn(_s.id, "ids"))


_RESTORE = _restore()
_RESTORE_MANY = _insert_deleted({"block": sa.literal_column("0", NUMBER), "block_offset": _s.position}, IdIn(_s.seq, "seqs"))


def restore(
    tx: Transaction,
    seq: int,
    kind: str,
    root: Node,
    position: int | None,
    below: Sequence[int] = (),
    after_batch: Callable[[Sequence[int]], None] = lambda _ids: None,
) -> None:
    """Restore the nodes that an event deleted, byte for byte; `after_batch` is called with the ids of each batch.

    `root` is the node whose deletion was requested; it goes under `root.parent_id`, to `position` or to the end (None). `below` are
    the ids of the other nodes, which were deleted with it, parents before their children.
    """
    slot, _ = siblings.attach(tx, kind, root.parent_id, position)
    ids = [root.id, *below]
    params = {"seq": seq, "kind": kind, "root": root.id, "to": root.parent_id, "new_block": slot.block, "new_offset": slot.offset}
    for batch in split_into_batches(ids):
        tx.execute(_RESTORE, **params, ids=tx.id_list(batch))
        after_batch(batch)
    if below:
        siblings.build_blocks(tx, kind, ids)
    add_to_total(tx, kind, len(ids))
    deleted_ids.record_restored(tx, kind, ids)


def restore_many(tx: Transaction, kind: str, deleted: Sequence[Snapshot]) -> None:
    """Restore all nodes of a kind that some events deleted, byte for byte; `deleted` are all their snapshots.

    Then `siblings.arrange` must give the roots their slots.
    """
    tx.execute(_RESTORE_MANY, kind=kind, seqs=tx.id_list(sorted({one.seq for one in deleted})))
    ids = [one.node.id for one in deleted]
    siblings.build_blocks(tx, kind, ids)
    add_to_total(tx, kind, len(ids))
    deleted_ids.record_restored(tx, kind, ids)


# --- retention ----------------------------------------------------------------------------------------------------


def find_oldest_event(tx: Transaction) -> int | None:
    """Return the oldest event for which rows are saved; None if there is none."""
    found: int | None = tx.connection.execute(sa.select(sa.func.min(_s.seq))).scalar_one()
    return found


def count(tx: Transaction) -> int:
    """Count the snapshots."""
    return tx.count(snapshots)


def purge(tx: Transaction, before: str, most: int = 5000) -> int:
    """Delete the snapshots of events older than `before`, oldest first, at most `most`; return their number.

    An event that has lost some of its snapshots can no longer be undone; those of all later events are still complete.
    """
    first = find_oldest_event(tx)
    if first is None:
        return 0
    later = sa.select(events.c.seq, events.c.at).where(events.c.seq >= first).order_by(events.c.seq).limit(most)
    coming = tx.connection.execute(later).all()
    bound = coming[0][0] - 1 if coming else _next_event(tx)  # the events themselves may have been purged already
    for seq, at in coming:
        if at >= before:
            break
        bound = seq
    key = (_s.seq, _s.kind, _s.id)
    stale = sa.select(*key).where(_s.seq <= bound).order_by(*key).limit(most)
    return tx.connection.execute(sa.delete(snapshots).where(sa.tuple_(*key).in_(stale))).rowcount
