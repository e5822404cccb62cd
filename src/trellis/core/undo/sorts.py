"""The sorts of events that can be undone many at a time, if nothing has changed the nodes since: far quicker than one by one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from trellis.core.events import find_undoing_events
from trellis.core.nodes import DEEPEST, Edits, NodeKind, delete_leaf_rows, position_on_return, refuse_taken, serialize_node
from trellis.core.operation import Context, OneByOne, Outcome
from trellis.core.undo.response import Done, build_outcome
from trellis.core.undo.revert import MOVED, build_revert, put_content
from trellis.core.undo.undelete import drop_lost_groups, existing_groups
from trellis.core.version import check_precondition
from trellis.store import nodes, siblings, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.nodes import Node
from trellis.store.snapshots import Snapshot


class Sort(NamedTuple):
    """One sort of events: `fits` recognises them, and `find_ready` returns the numbers of those that `undo` can undo together.

    `at_once` is how many records `undo` can take at once. If `is_cheap`, the events do not count towards the limit on those that
    take long to undo.
    """

    fits: Callable[[NodeKind, Event], bool]
    find_ready: Callable[[Transaction, NodeKind, Sequence[Event]], set[int]]
    undo: Callable[[NodeKind, Sequence[Context], Sequence[Event]], list[Outcome]]
    at_once: int
    is_cheap: bool


def find_sort(kind: NodeKind, event: Event) -> Sort | None:
    """Return the sort of an event of a kind; None if it has to be undone by itself."""
    return next((sort for sort in _SORTS if sort.fits(kind, event)), None)


# --- creations ----------------------------------------------------------------------------------------------------


def _is_creation(kind: NodeKind, event: Event) -> bool:
    """Return whether an event created or restored one record and did nothing else.

    Groups are excluded, since other nodes may have named them since.
    """
    is_first = event.before is None and event.after is not None
    return is_first and not event.touched and event.resource == kind.name and not kind.is_group


def _find_untouched(tx: Transaction, kind: NodeKind, creations: Sequence[Event]) -> set[int]:
    """Return the numbers of the creations whose records have not changed and have no children but records of these creations."""
    there: dict[int, tuple[int, int | None]] = {}  # node id → the event that created it, and its parent
    for batch in nodes.split_into_batches(creations, nodes.AT_ONCE):
        ids = [event.resource_id or 0 for event in batch]
        found = nodes.find_by_ids(tx, kind.name, ids)
        last = snapshots.find_last_changes(tx, kind.name, ids)
        for event in batch:
            node = found.get(event.resource_id or 0)
            # A restored record keeps the time of its last change; it is unchanged if the row that its delete saved is the last one.
            if node is not None and last.get(node.id) == event.undoes and (event.undoes or node.updated_at == event.at):
                there[node.id] = event.seq, node.parent_id
    return {seq for seq, _ in _without_others_below(tx, kind, there).values()}


def _without_others_below(
    tx: Transaction, kind: NodeKind, there: dict[int, tuple[int, int | None]]
) -> dict[int, tuple[int, int | None]]:
    """Leave out the nodes that have children other than these nodes, and all their ancestors."""
    if not kind.tree:
        return there
    own = Counter(parent for _, parent in there.values())
    counts: dict[int, int] = {}
    for batch in nodes.split_into_batches(list(there)):
        counts |= siblings.count_children_by_parent(tx, kind.name, batch)
    wrong = [node for node, count in counts.items() if count != own[node]]
    while wrong:
        _, parent = there.pop(wrong.pop(), (0, None))  # it may have been left out already, as the parent of another
        if parent in there:
            wrong.append(parent)
    return there


def _delete_untouched(kind: NodeKind, contexts: Sequence[Context], undone: Sequence[Event]) -> list[Outcome]:
    """Delete what some events created, in this order. All events must be among those that `_find_untouched` has found."""
    context = contexts[0]
    found: dict[int, Node] = {}
    for batch in nodes.split_into_batches(undone):
        found |= nodes.find_by_ids(context.tx, kind.name, [event.resource_id or 0 for event in batch])
    records = delete_leaf_rows(kind, context, [found[event.resource_id or 0] for event in undone])
    pairs = zip(undone, records, strict=True)
    return [build_outcome(kind, event, record["id"], Done(deleted=[record["id"]]), before=record) for event, record in pairs]


# --- changes ------------------------------------------------------------------------------------------------------


def _is_change(kind: NodeKind, event: Event) -> bool:
    """Return whether an event changed or moved one record and did nothing else."""
    return event.before is not None and event.after is not None and not event.touched and event.resource == kind.name


def _find_unchanged(tx: Transaction, kind: NodeKind, changes: Sequence[Event]) -> set[int]:
    """Return the numbers of the changes whose records have not changed since. Shifts by siblings do not count."""
    last: dict[int, int] = {}
    for batch in nodes.split_into_batches(changes):
        last |= snapshots.find_last_changes(tx, kind.name, [event.resource_id or 0 for event in batch])
    return {event.seq for event in changes if last.get(event.resource_id or 0) == event.seq}


def _change_back(kind: NodeKind, contexts: Sequence[Context], undone: Sequence[Event]) -> list[Outcome]:
    """Revert what some events changed, in this order. All events must be among those that `_find_unchanged` has found.

    Raises OneByOne or Refused, before anything is written.
    """
    first = contexts[0]
    seqs = [event.seq for event in undone]
    saved = {one.seq: one for one in snapshots.find_of_events(first.tx, kind.name, seqs, "changed")}
    if len(saved) < len(seqs) or find_undoing_events(first.tx, seqs) or any("parentId" in one.input for one in contexts):
        raise OneByOne
    then = {one.node.id: one.node for one in saved.values()}
    moving = {saved[event.seq].node.id for event in undone if not MOVED.isdisjoint(event.changed)}
    groups = existing_groups(first)
    edits = Edits(kind, first, [saved[seq].node.id for seq in seqs], moving, lambda node: then[node.id].parent_id)
    outcomes: list[Outcome] = []
    for context, event in zip(contexts, undone, strict=True):
        snapshot = saved[event.seq]
        now, above = edits.find(snapshot.node.id)
        before = serialize_node(kind, now, above, context.environment.community_url)
        check_precondition(context.call.expected, before)
        wanted, lost = drop_lost_groups(kind, snapshot.node, groups)
        if kind.leaf_only(wanted.fields) and not kind.leaf_only(now.fields):
            raise OneByOne
        placed, neighbours = now, None
        if now.id in moving:
            neighbours = edits.find_neighbours(now)
            placed, above = edits.move(now, wanted.parent_id, _find_place(edits, snapshot, now))
        new = put_content(wanted, placed)
        after = serialize_node(kind, new, above, context.environment.community_url)
        outcome = build_revert(kind, context, event, (now, before), (new, after), lost)
        outcomes.append(outcome)
        if outcome.happened:
            edits.change(now, new, neighbours)
    edits.write()
    return outcomes


# --- deletes ------------------------------------------------------------------------------------------------------


def _is_delete(kind: NodeKind, event: Event) -> bool:
    """Return whether an event deleted a record, with everything below it, and did nothing else.

    Groups are excluded, since other nodes may have named them.
    """
    is_last = event.before is not None and event.after is None
    return is_last and event.resource == kind.name and not kind.is_group and all(one["how"] == "deleted" for one in event.touched)


def _find_gone(tx: Transaction, kind: NodeKind, deletes: Sequence[Event]) -> set[int]:
    """Return the numbers of the deletes of which no record exists now, since nothing else has restored one."""
    there: set[int] = set()
    for batch in nodes.split_into_batches([number for event in deletes for number in _list_deleted(event)]):
        there |= nodes.find_existing(tx, kind.name, batch)
    return {event.seq for event in deletes if there.isdisjoint(_list_deleted(event))}


def _list_deleted(event: Event) -> list[int]:
    return [event.resource_id or 0, *(one["id"] for one in event.touched)]


def _bring_back(kind: NodeKind, contexts: Sequence[Context], undone: Sequence[Event]) -> list[Outcome]:
    """Restore what some events deleted, in this order. All events must be among those that `_find_gone` has found.

    Raises OneByOne or Refused, before anything is written.
    """
    first = contexts[0]
    seqs = [event.seq for event in undone]
    saved = snapshots.find_of_events(first.tx, kind.name, seqs, "deleted")
    tops = {event.resource_id: event.seq for event in undone}
    roots = {one.seq: one for one in saved if tops.get(one.node.id) == one.seq}
    if len(roots) < len(seqs) or len({one.node.id for one in saved}) < sum(len(_list_deleted(event)) for event in undone):
        raise OneByOne
    if find_undoing_events(first.tx, seqs) or any("parentId" in one.input for one in contexts):
        raise OneByOne
    groups = existing_groups(first)
    if any(drop_lost_groups(kind, one.node, groups)[1] for one in saved):
        raise OneByOne
    refuse_taken(kind, first, [one.node.external_id for one in saved], None)
    edits = Edits(kind, first, (), returning=[one.node for one in roots.values()])
    heights = _measure(saved)
    outcomes: list[Outcome] = []
    for context, event in zip(contexts, undone, strict=True):
        check_precondition(context.call.expected, {})  # no record exists that could match
        snapshot = roots[event.seq]
        if edits.find_level(snapshot.node.parent_id) + heights[event.seq] > DEEPEST:
            raise OneByOne
        node, above = edits.add(snapshot.node, _find_place(edits, snapshot, None))
        after = serialize_node(kind, node, above, context.environment.community_url)
        outcomes.append(build_outcome(kind, event, node.id, Done(_list_deleted(event)), after=after))
    snapshots.restore_many(first.tx, kind.name, saved)
    edits.write_order()
    return outcomes


def _measure(saved: Sequence[Snapshot]) -> dict[int, int]:
    """Return how many levels of nodes each event deleted: event → number of levels."""
    parents = {one.node.id: one.node.parent_id for one in saved}
    heights: dict[int, int] = {}
    for one in saved:
        level, at = 0, one.node.id
        while at in parents and level <= DEEPEST:
            level, at = level + 1, parents[at] or 0
        heights[one.seq] = max(level, heights.get(one.seq, 0))
    return heights


def _find_place(edits: Edits, snapshot: Snapshot, now: Node | None) -> int:
    """Return the place of a node next to its old neighbours. `now` is the node as it is; None if it is deleted."""
    parent = snapshot.node.parent_id

    def places(side: str) -> Iterator[int | None]:
        return (edits.find_position(parent, sibling) for sibling in snapshot.neighbours.get(side, ()))

    own = now.position if now is not None and now.parent_id == parent else None
    return position_on_return(snapshot.node.position, places("before"), places("behind"), own)


_SORTS: Final = (
    Sort(_is_creation, _find_untouched, _delete_untouched, nodes.BATCH, is_cheap=True),
    Sort(_is_change, _find_unchanged, _change_back, nodes.AT_ONCE, is_cheap=False),
    Sort(_is_delete, _find_gone, _bring_back, nodes.AT_ONCE, is_cheap=False),
)
