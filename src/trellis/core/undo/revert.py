"""Reverting a change: a record becomes what it was before it, unless it was changed again since."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from trellis.core.events import changed_members
from trellis.core.nodes import NodeKind, Placement, apply_placement, seen
from trellis.core.operation import Context, Outcome
from trellis.core.undo.undelete import drop_lost_groups, existing_groups, find_placement, serialize_outcome
from trellis.core.version import check_precondition
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store import events, nodes, siblings, snapshots
from trellis.store.events import Event
from trellis.store.nodes import Node
from trellis.store.snapshots import Snapshot

Difference = dict[str, Any]
_MOVED: Final = frozenset({"parentId", "position"})  # one of these is changed by every move, and by nothing else


def revert(kind: NodeKind, context: Context, event: Event, then: Snapshot) -> Outcome:
    """Make a record what it was before an event. Refuses if it was changed or deleted since, telling what differs."""
    now = nodes.find(context.tx, kind.name, then.node.id)
    if now is None:
        raise deleted_since(kind, context, then.node.id)
    before = seen(kind, context, now)
    check_precondition(context.call.expected, before)
    groups = existing_groups(context)
    refuse_changed(kind, context, event, now, groups)
    place = _find_placement(kind, context, event, then, now)
    wanted, lost = drop_lost_groups(kind, then.node, groups)
    _check_leaf_only(kind, context, now, wanted)
    beside = None if place.stays else snapshots.find_neighbours(context.tx, kind.name, now)
    placed = apply_placement(context.tx, kind, now, place)
    new = replace(placed, name=wanted.name, fields=wanted.fields, permissions=wanted.permissions)
    after = seen(kind, context, new)
    changed = changed_members(before, after) + tuple(
        f.name for f in kind.secrets if new.fields.get(f.name) != now.fields.get(f.name)
    )
    if not changed:
        result = serialize_outcome(event, before, restored=[], lost=lost)
        return Outcome(result, happened=False, plan=result | {"dryRun": True})
    snapshots.save(context.tx, kind.name, now, "changed", beside)
    new.updated_at = after["updatedAt"] = context.now
    nodes.update(context.tx, kind.name, new)
    result = serialize_outcome(event, after, restored=[new.id], lost=lost)
    return Outcome(
        result,
        resource_id=new.id,
        before=before,
        after=after,
        changed=changed,
        plan=result | {"dryRun": True},
        undoes=event.seq,
    )


def _find_placement(kind: NodeKind, context: Context, event: Event, then: Snapshot, now: Node) -> Placement:
    if not _MOVED.isdisjoint(event.changed):
        return find_placement(kind, context, then, now)
    if "parentId" in context.input:
        detail = f"parentId: event {event.seq} did not move the {kind.singular}, so undoing it does not either. Leave parentId out."
        raise refuse_faults((Fault("parentId", "INVALID_PARENT", detail),))
    return Placement(now.parent_id, stays=True)


def _check_leaf_only(kind: NodeKind, context: Context, now: Node, wanted: Node) -> None:
    """Refuse to make a node one that takes no children while it has some."""
    if (
        not kind.leaf_only(wanted.fields)
        or kind.leaf_only(now.fields)
        or not (count := siblings.count_children(context.tx, kind.name, now.id))
    ):
        return
    raise Refused(
        "CHANGED_SINCE",
        f"It was a redirect, which has no children, and has {count} now: move or delete them first.",
        facts={"differences": [{"field": "children", "then": 0, "now": count}]},
    )


# --- changed since ------------------------------------------------------------------------------------------------


def deleted_since(kind: NodeKind, context: Context, node: int) -> Refused:
    """Return the refusal to take back an event of a record that is gone, naming the event that deleted it."""
    last = snapshots.find_latest(context.tx, kind.name, node)
    by = f", by event {last.seq}: undo that first" if last is not None and last.change == "deleted" else ""
    facts: dict[str, Any] = {"differences": []} | ({"deletedBy": last.seq} if by and last is not None else {})
    return Refused("CHANGED_SINCE", f"The {kind.singular} {node} was deleted since{by}.", facts=facts)


def refuse_changed(kind: NodeKind, context: Context, event: Event, now: Node, groups: AbstractSet[int]) -> None:
    """Refuse if a record is not as an event left it. That siblings have shifted it, or a group is gone, does not count."""
    later = snapshots.find_next(context.tx, kind.name, now.id, event.seq)
    if later is None:
        return
    about = {"resource": kind.name, "resource_id": now.id}
    since = events.read_page(context.tx, about, 1000, event.seq, newest_first=False)
    moved = any("position" in one.changed for one in since)
    differences = list(_differences(kind, drop_lost_groups(kind, later.node, groups)[0], now, moved=moved))
    if not differences:
        return
    named = ", ".join(difference["field"] for difference in differences)
    by = f" (event {since[-1].seq})" if since else ""
    raise Refused(
        "CHANGED_SINCE",
        f"The {kind.singular} {now.id} was changed again since event {event.seq}{by}: {named}. Undo the later changes first, "
        "or change it by hand.",
        facts={"differences": differences},
    )


def _differences(kind: NodeKind, then: Node, now: Node, *, moved: bool) -> Iterator[Difference]:
    if then.name != now.name:
        yield {"field": "name", "then": then.name, "now": now.name}
    if then.parent_id != now.parent_id:
        yield {"field": "parentId", "then": then.parent_id, "now": now.parent_id}
    elif moved and then.position != now.position:
        yield {"field": "position", "then": then.position, "now": now.position}
    for field in kind.fields:
        old, new = then.fields.get(field.name), now.fields.get(field.name)
        if old != new:
            yield {"field": field.name} | ({} if field.write_only else {"then": old, "now": new})
    for option in kind.options:
        old, new = then.permissions.get(option), now.permissions.get(option)
        if old != new:
            yield {"field": f"permissions.{option}", "then": old, "now": new}
