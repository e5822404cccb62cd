"""Taking back the making of records: what an event has made is deleted again, unless something was done to it since."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from trellis.core.nodes import NodeKind, delete_rows, seen
from trellis.core.operation import Context, Outcome
from trellis.core.undo.revert import deleted_since, refuse_changed
from trellis.core.undo.undelete import SHOWN, existing_groups, serialize_outcome
from trellis.core.version import check_precondition
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store import nodes, snapshots
from trellis.store.events import Event
from trellis.store.nodes import Node


def delete_made(kind: NodeKind, context: Context, event: Event) -> Outcome:
    """Delete what an event has made. Refuses if any of it was changed, moved or deleted since, or others stand under it now."""
    root = nodes.find(context.tx, kind.name, event.resource_id or 0)
    if root is None:
        raise deleted_since(kind, context, event.resource_id or 0)
    before = seen(kind, context, root)
    check_precondition(context.call.expected, before)
    if "parentId" in context.input:
        detail = f"parentId: event {event.seq} made the {kind.singular}, and undoing it deletes it. Leave parentId out."
        raise refuse_faults((Fault("parentId", "INVALID_PARENT", detail),))
    below = nodes.find_descendants(context.tx, kind.name, root.id) if kind.tree else []
    _unchanged(kind, context, event, root, below)
    delete_rows(kind, context, root, below)
    gone = [root.id, *below]
    result = serialize_outcome(event, None) | {"deleted": {"count": len(gone), "ids": gone[:SHOWN]}}
    return Outcome(
        result,
        resource_id=root.id,
        before=before,
        touched=tuple({"resource": kind.name, "id": i, "how": "deleted"} for i in below),
        plan=result | {"dryRun": True},
        undoes=event.seq,
    )


def _unchanged(kind: NodeKind, context: Context, event: Event, root: Node, below: Sequence[int]) -> None:
    made = [one["id"] for one in event.touched]
    groups = existing_groups(context)
    for ids in nodes.split_into_batches([root.id, *made]):
        there = nodes.find_by_ids(context.tx, kind.name, ids)
        later = snapshots.find_next_of_each(context.tx, kind.name, ids, event.seq)
        for number in ids:
            if (now := there.get(number)) is None:
                raise deleted_since(kind, context, number)
            # A row that was found as it is now was brought back by an undo; one that nothing has found is as it was made.
            if now.updated_at != event.at or (number in later and later[number].node != now):
                _judge(kind, context, event, now, groups)
    if more := set(below) - set(made):
        raise Refused(
            "CHANGED_SINCE",
            f"{len(more)} {kind.title.lower()} that event {event.seq} has not made stand below the {kind.singular} {root.id} now: "
            "move or delete them first.",
            facts={"differences": [{"field": "children", "then": len(made), "now": len(below)}]},
        )


def _judge(kind: NodeKind, context: Context, event: Event, now: Node, groups: AbstractSet[int]) -> None:
    """Refuse if a record that was written again is not as the event made it. That a group is gone does not count."""
    days = context.environment.keep_snapshots
    if datetime.fromisoformat(context.now) - datetime.fromisoformat(event.at) >= timedelta(days=days):
        detail = f"The {kind.singular} {now.id} was changed since event {event.seq}, and how is kept for {days} days only."
        raise Refused("NO_LONGER_KEPT", detail)
    refuse_changed(kind, context, event, now, groups)
