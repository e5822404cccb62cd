"""Undoes many creations at once: records that have not changed since are deleted together, which is far quicker."""

from collections import Counter
from collections.abc import Sequence

from trellis.core.nodes import NodeKind, delete_leaf_rows
from trellis.core.operation import Context, Outcome
from trellis.core.undo.response import Done, build_outcome
from trellis.store import nodes, siblings, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.nodes import Node


def is_creation(kind: NodeKind, event: Event) -> bool:
    """Return whether an event created or restored one record and did nothing else.

    Groups are excluded, since other nodes may have named them since.
    """
    is_first = event.before is None and event.after is not None
    return is_first and not event.touched and event.resource == kind.name and not kind.is_group


def find_untouched(tx: Transaction, kind: NodeKind, creations: Sequence[Event]) -> set[int]:
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


def delete_untouched(kind: NodeKind, contexts: Sequence[Context], undone: Sequence[Event]) -> list[Outcome]:
    """Delete what some events created, in this order. All events must be among those that `find_untouched` has found."""
    context = contexts[0]
    found: dict[int, Node] = {}
    for batch in nodes.split_into_batches(undone):
        found |= nodes.find_by_ids(context.tx, kind.name, [event.resource_id or 0 for event in batch])
    records = delete_leaf_rows(kind, context, [found[event.resource_id or 0] for event in undone])
    pairs = zip(undone, records, strict=True)
    return [build_outcome(kind, event, record["id"], Done(deleted=[record["id"]]), before=record) for event, record in pairs]
