"""Bringing back what was deleted: its rows as they were, the children that had moved away, and a group's permissions."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from trellis.core.fields import EVERYONE
from trellis.core.nodes import NodeKind, Placement, apply_placement, makes_cycle, position_on_return, seen, without_group
from trellis.core.operation import Context, Outcome, Progress
from trellis.core.version import check_precondition
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store import nodes, siblings, snapshots
from trellis.store.events import Event
from trellis.store.nodes import Node
from trellis.store.snapshots import Snapshot

SHOWN: Final = 1000  # ids that an answer lists; the counts are of all
LeftRecord = dict[str, Any]


def restore_deleted(kind: NodeKind, context: Context, event: Event, kept: Sequence[Snapshot]) -> Outcome:
    """Bring back what a delete took away. Refuses if its parent cannot take it back and no other is given.

    `kept` are the rows that the event found, without those below its record.
    """
    check_precondition(context.call.expected, {})  # there is no record yet that could be the one that was read
    root = next(snapshot for snapshot in kept if snapshot.change == "deleted")
    below = [one["id"] for one in event.touched if one["how"] == "deleted"]
    progress = Progress(context.call, len(kept) + len(below))
    place = find_placement(kind, context, root, None)
    node = replace(root.node, parent_id=place.parent_id)
    lost = _restore_rows(kind, context, event.seq, node, place, below, progress)
    moved, left = _restore_children(kind, context, node, [snapshot for snapshot in kept if snapshot.change == "moved"], progress)
    changed, unchanged = _restore_group(context, node.id, [snapshot for snapshot in kept if snapshot.change == "changed"], progress)
    after = seen(kind, context, _current_node(kind, context, node.id))
    result = serialize_outcome(
        event,
        after,
        restored=[node.id, *below],
        moved=moved,
        changed=changed,
        left=left + unchanged,
        lost=lost,
    )
    touched = [{"resource": kind.name, "id": i, "how": "restored"} for i in below]
    touched += [{"resource": kind.name, "id": i, "how": "moved"} for i in moved]
    touched += [{"resource": name, "id": i, "how": "changed"} for name, i in changed]
    return Outcome(
        result,
        resource_id=node.id,
        after=after,
        touched=tuple(touched),
        plan=result | {"dryRun": True},
        undoes=event.seq,
    )


def serialize_outcome(
    event: Event,
    after: Mapping[str, Any] | None,
    *,
    restored: Sequence[int] = (),
    moved: Sequence[int] = (),
    changed: Sequence[tuple[str, int]] = (),
    left: Sequence[LeftRecord] = (),
    lost: Iterable[int] = (),
) -> dict[str, Any]:
    """Write what was undone and what could not be."""
    return {
        "event": event.seq,
        "operation": event.operation,
        "record": after,
        "restored": {"count": len(restored), "ids": list(restored[:SHOWN])},
        "deleted": {"count": 0, "ids": []},
        "moved": {"count": len(moved), "ids": list(moved[:SHOWN])},
        "changed": {"count": len(changed), "nodes": [{"resource": name, "id": i} for name, i in changed[:SHOWN]]},
        "left": {"count": len(left), "nodes": list(left[:SHOWN])},
        "lostGroups": sorted(lost),
    }


def _restore_rows(
    kind: NodeKind, context: Context, seq: int, node: Node, place: Placement, below: Sequence[int], progress: Progress
) -> AbstractSet[int]:
    """Bring a node and those below it back; return the groups that are gone, and so fell out of their permissions."""
    groups = existing_groups(context)
    lost: set[int] = set()

    def back(ids: Sequence[int]) -> None:  # read by the slice: all at once, they would hold up readers in this process
        for snapshot in snapshots.find_by_ids(context.tx, seq, kind.name, ids):
            lost.update(_remove_lost_groups(kind, context, snapshot.node, groups))
        progress.done(len(ids))

    snapshots.restore(context.tx, seq, kind.name, node, place.place, below, back)
    return lost


def _current_node(kind: NodeKind, context: Context, node: int) -> Node:
    found = nodes.find(context.tx, kind.name, node)
    if found is None:
        raise LookupError(f"{kind.name} {node} was there a moment ago")
    return found


# --- where it goes ------------------------------------------------------------------------------------------------


def find_placement(kind: NodeKind, context: Context, snapshot: Snapshot, now: Node | None) -> Placement:
    """Find the place to which a node goes back: the wanted parent's end, or its old neighbours' side; `now` is where it stands."""
    wanted = "parentId" in context.input
    parent_id = context.input.get("parentId") if wanted else snapshot.node.parent_id
    parent = _resolve_parent(kind, context, parent_id, now, wanted=wanted) if parent_id is not None else None
    if wanted and parent_id != snapshot.node.parent_id:
        return Placement(parent_id, parent)
    own = now.position if now is not None and now.parent_id == parent_id else None
    before, behind = (
        [siblings.find_position(context.tx, kind.name, parent_id, sibling) for sibling in snapshot.neighbours.get(side, ())]
        for side in ("before", "behind")
    )
    return Placement(parent_id, parent, position_on_return(snapshot.node.position, before, behind, own))


def _resolve_parent(kind: NodeKind, context: Context, parent_id: int, now: Node | None, *, wanted: bool) -> Node:
    parent = nodes.find(context.tx, kind.name, parent_id)
    if parent is None:
        problem = f"there is no {kind.singular} {parent_id}"
    elif kind.leaf_only(parent.fields):
        problem = f"{kind.singular} {parent_id} is a redirect, and a redirect has no children"
    elif now is not None and makes_cycle(now.id, nodes.find_ancestors(context.tx, kind.name, (parent_id,))):
        problem = f"{kind.singular} {parent_id} stands below it"
    else:
        return parent
    if wanted:
        detail = f"parentId: {problem}. Give another id, or null for the top level."
        raise refuse_faults((Fault("parentId", "INVALID_PARENT", detail),))
    raise Refused(
        "PARENT_NEEDED",
        f"It cannot go back to where it was: {problem} now. Say with parentId where it shall go: an id, or null for the top level.",
        facts={"parentId": parent_id},
    )


# --- groups that are gone -----------------------------------------------------------------------------------------


def existing_groups(context: Context) -> AbstractSet[int]:
    """Return the ids of the groups that there are."""
    group_kind = next((kind for kind in context.environment.kinds if kind.is_group), None)
    return set() if group_kind is None else {group.id for group in nodes.find_all(context.tx, group_kind.name)}


def drop_lost_groups(kind: NodeKind, node: Node, groups: AbstractSet[int]) -> tuple[Node, set[int]]:
    """Take out of a node's permissions the groups that are gone; return it with their ids."""
    lists = [*node.permissions.values(), *(node.fields.get(f.name) for f in kind.group_fields)]
    lost = {group for who in lists if isinstance(who, list) for group in who if group not in groups}
    for group in lost:
        permissions = {option: without_group(who, group) for option, who in node.permissions.items()}
        fields = node.fields | {f.name: without_group(node.fields.get(f.name), group) for f in kind.group_fields}
        node = replace(node, permissions=permissions, fields=fields)
    return node, lost


def lists_naming(kind: NodeKind, node: Node, group: int) -> list[str]:
    """Name the lists of a node that hold a group: options of its permissions, and fields."""
    lists = {**node.permissions, **{f.name: node.fields.get(f.name) for f in kind.group_fields}}
    return [name for name, who in lists.items() if isinstance(who, list) and group in who]


def _remove_lost_groups(kind: NodeKind, context: Context, node: Node, groups: AbstractSet[int]) -> set[int]:
    mended, lost = drop_lost_groups(kind, node, groups)
    if lost:
        nodes.update(context.tx, kind.name, replace(mended, updated_at=context.now))
    return lost


# --- what the delete had done elsewhere ---------------------------------------------------------------------------


def _restore_children(
    kind: NodeKind, context: Context, root: Node, children: Sequence[Snapshot], progress: Progress
) -> tuple[list[int], list[LeftRecord]]:
    """Move the children back that still stand where the delete had moved them, in their old order."""
    back: list[int] = []
    left: list[LeftRecord] = []
    above = nodes.find_ancestors(context.tx, kind.name, (root.id,)) if children else {}
    for snapshot in children:
        progress.done()
        child = nodes.find(context.tx, kind.name, snapshot.node.id)
        if child is None:
            why = "It was deleted since."
        elif child.parent_id != snapshot.neighbours.get("to"):
            why = "It was moved elsewhere since."
        elif child.id in above:
            why = "What came back stands below it now."
        else:
            snapshots.save(context.tx, kind.name, child, "moved", {"to": root.id})
            placed = apply_placement(context.tx, kind, child, Placement(root.id, root))
            nodes.update(context.tx, kind.name, replace(placed, updated_at=context.now))
            back.append(child.id)
            continue
        left.append({"resource": kind.name, "id": snapshot.node.id, "why": why})
    return back, left


def _restore_group(
    context: Context, group: int, changed: Sequence[Snapshot], progress: Progress
) -> tuple[list[tuple[str, int]], list[LeftRecord]]:
    """Return a group its permissions again: each that is still as its delete had left it."""
    kinds = {kind.name: kind for kind in context.environment.kinds}
    back: list[tuple[str, int]] = []
    left: list[LeftRecord] = []
    for then in changed:
        progress.done()
        now = nodes.find(context.tx, then.kind, then.node.id)
        if now is None:
            left.append({"resource": then.kind, "id": then.node.id, "why": "It was deleted since."})
            continue
        own = {f.name for f in kinds[then.kind].group_fields} if then.kind in kinds else set()
        permissions, missed = _add_group_again(group, then.node.permissions, now.permissions, set(then.node.permissions))
        fields, missed_fields = _add_group_again(group, then.node.fields, now.fields, own)
        if missed or missed_fields:
            why = f"Changed since: {', '.join(missed + missed_fields)}."
            left.append({"resource": then.kind, "id": now.id, "why": why})
        if permissions != now.permissions or fields != now.fields:
            snapshots.save(context.tx, then.kind, now, "changed")
            nodes.update(context.tx, then.kind, replace(now, permissions=permissions, fields=fields, updated_at=context.now))
            back.append((then.kind, now.id))
    return back, left


def _add_group_again(
    group: int, then: Mapping[str, Any], now: Mapping[str, Any], names: AbstractSet[str]
) -> tuple[dict[str, Any], list[str]]:
    """Put a group back into the lists that held it; name those that were changed meanwhile, and are left alone."""
    settled, missed = dict(now), []
    for name in sorted(names & now.keys()):
        who = then[name]
        if who == EVERYONE or not isinstance(who, list) or group not in who:
            continue
        if now[name] == without_group(who, group):
            settled[name] = who
        else:
            missed.append(name)
    return settled, missed
