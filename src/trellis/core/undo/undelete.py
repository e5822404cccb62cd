"""Restores what was deleted: its rows, the children that the delete had moved away, and a group's permissions."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from trellis.core.fields import EVERYONE
from trellis.core.nodes import (
    DEEPEST,
    NodeKind,
    Placement,
    Unfit,
    drop_groups,
    find_parent,
    position_on_return,
    refuse_taken,
    serialize_target,
    without_groups,
)
from trellis.core.operation import Context, Outcome, Progress
from trellis.core.undo.response import Done, LeftRecord, build_outcome
from trellis.core.version import check_precondition
from trellis.errors import Refused, refuse_fault
from trellis.sentences import advise, mark, say
from trellis.store import nodes, siblings, snapshots
from trellis.store.events import Event
from trellis.store.nodes import Node
from trellis.store.snapshots import SavedPosition, Snapshot


def restore_deleted(kind: NodeKind, context: Context, event: Event, root: Snapshot) -> Outcome:
    """Restore what an event deleted. Refuses if the old parent is gone or cannot have children and no other parent is given.

    `root` is the saved row of the event's record.
    """
    check_precondition(context.call.expected, {})  # no record exists that could match
    children = snapshots.list_places(context.tx, event.seq, kind.name)
    naming = snapshots.list_keys(context.tx, event.seq, "changed")
    below = [one["id"] for one in event.touched if one["how"] == "deleted"]
    _refuse_existing(kind, context, event, [root.node.id, *below])
    progress = Progress(context.call, 1 + len(children) + len(naming) + len(below))
    place = find_placement(kind, context, root, None)
    node = replace(root.node, parent_id=place.parent_id)
    lost = _restore_rows(kind, context, event.seq, node, place, below, progress)
    moved, left = _restore_children(kind, context, node, children, progress)
    _check_depth(kind, context, node)
    changed, unchanged = _restore_group(context, node.id, snapshots.walk(context.tx, event.seq, naming), progress)
    return build_outcome(
        kind,
        event,
        node.id,
        Done([node.id, *below], moved=moved, regrouped=changed, left=left + unchanged, lost=lost),
        after=serialize_target(kind, context, _current_node(kind, context, node.id)),
    )


def _restore_rows(
    kind: NodeKind, context: Context, seq: int, node: Node, place: Placement, below: Sequence[int], progress: Progress
) -> AbstractSet[int]:
    """Restore a node and the nodes below it; return the deleted groups that were removed from their permissions."""
    groups = existing_groups(context)
    lost: set[int] = set()
    for batch in nodes.split_into_batches([node.id, *below]):
        refuse_taken(kind, context, snapshots.list_external_ids(context.tx, seq, kind.name, batch), None)

    def back(ids: Sequence[int]) -> None:  # read in batches, so that other threads of this process can run in between
        for snapshot in snapshots.walk(context.tx, seq, [(kind.name, number) for number in ids]):
            lost.update(_remove_lost_groups(kind, context, snapshot.node, groups))
        progress.done(len(ids))

    snapshots.restore(context.tx, seq, kind.name, node, place.place, below, back)
    return lost


def _refuse_existing(kind: NodeKind, context: Context, event: Event, ids: Sequence[int]) -> None:
    """Refuse if one of the nodes exists: the undo of another delete has already restored it."""
    if there := nodes.find_existing(context.tx, kind.name, ids):
        told = say(
            "Event {seq} deleted {singular} {id}, which is there again: the undo of another event has brought it back.",
            seq=event.seq,
            singular=kind.singular,
            id=min(there),
        )
        raise Refused("NOT_RESTORABLE", told)


def _current_node(kind: NodeKind, context: Context, node: int) -> Node:
    found = nodes.find(context.tx, kind.name, node)
    if found is None:
        raise LookupError(f"{kind.name} {node} was there a moment ago")
    return found


# --- the place of a restored node ---------------------------------------------------------------------------------


def find_placement(kind: NodeKind, context: Context, snapshot: Snapshot, now: Node | None) -> Placement:
    """Find the place of a restored node: last under the requested parent, or next to its old neighbours.

    `now` is the node as it is; None if it is deleted.
    """
    wanted = "parentId" in context.input
    parent_id = context.input.get("parentId") if wanted else snapshot.node.parent_id
    reach = context.find_reach(kind)
    if reach is not None and (parent_id is None or (now is not None and not reach.contains(context.tx, now.parent_id))):
        raise reach.refuse(say("Its place is outside."))
    parent = _resolve_parent(kind, context, parent_id, now, wanted=wanted) if parent_id is not None else None
    if wanted and parent_id != snapshot.node.parent_id:
        return Placement(parent_id, parent)
    own = now.position if now is not None and now.parent_id == parent_id else None
    beside = [snapshot.neighbours.get(side, ()) for side in ("before", "behind")]
    places = siblings.find_places(context.tx, kind.name, [*beside[0], *beside[1]])
    there = {sibling: position for sibling, (parent_now, position) in places.items() if parent_now == parent_id}
    before, behind = ([there.get(sibling) for sibling in side] for side in beside)
    return Placement(parent_id, parent, position_on_return(snapshot.node.position, before, behind, own))


def _resolve_parent(kind: NodeKind, context: Context, parent_id: int, now: Node | None, *, wanted: bool) -> Node:
    found = find_parent(kind, context, parent_id, now)
    if isinstance(found, Unfit):
        raise _refuse_parent(kind, parent_id, found, wanted=wanted)
    return found.node


def _check_depth(kind: NodeKind, context: Context, node: Node) -> None:
    """Refuse if the nodes that were restored with a node are too deep."""
    level = nodes.find_level(context.tx, kind.name, node.parent_id)
    if node.parent_id is not None and nodes.reaches_down(context.tx, kind.name, node.id, DEEPEST - level):
        raise _refuse_parent(kind, node.parent_id, Unfit.TOO_DEEP, wanted="parentId" in context.input)


_BELOW: Final = mark("{singular} {parent_id} is below it")
_UNFIT: Final = {
    Unfit.MISSING: mark("there is no {singular} {parent_id}"),
    Unfit.LEAF_ONLY: mark("{singular} {parent_id} is {leaf}, and {leaves} cannot have children"),
    Unfit.ITSELF: _BELOW,
    Unfit.BELOW: _BELOW,
    Unfit.TOO_DEEP: mark("under {singular} {parent_id} there would be more than {deepest} levels"),
}


def _refuse_parent(kind: NodeKind, parent_id: int, unfit: Unfit, *, wanted: bool) -> Refused:
    """Return the refusal to restore a node under its old parent or, if `wanted`, under the requested one."""
    words = {"leaf": kind.leaf.one, "leaves": kind.leaf.several}
    problem = say(_UNFIT[unfit], singular=kind.singular, parent_id=parent_id, deepest=DEEPEST, **words)
    if wanted:
        told = say("parentId: {problem}.", problem=problem)
        detail = advise(told, say("Send another id, or null for the top level."))
        return refuse_fault("parentId", "INVALID_PARENT", detail)
    return Refused(
        "PARENT_NEEDED",
        advise(
            say("The node cannot go back to its old parent: {problem}.", problem=problem),
            say("Send parentId (--to): an id, or null (root) for the top level."),
        ),
        facts={"parentId": parent_id},
    )


# --- deleted groups -----------------------------------------------------------------------------------------------


def existing_groups(context: Context) -> AbstractSet[int]:
    """Return the ids of all groups."""
    group_kind = context.environment.group_kind
    return set() if group_kind is None else nodes.find_all_ids(context.tx, group_kind.name)


def drop_lost_groups(kind: NodeKind, node: Node, groups: AbstractSet[int]) -> tuple[Node, set[int]]:
    """Remove deleted groups from a node's permissions and group fields; return the node and the ids of these groups."""
    return drop_groups(kind, node, lambda group: group not in groups)


def lists_naming(kind: NodeKind, node: Node, group: int) -> list[str]:
    """Return the names of a node's permission options and fields that name a group."""
    lists = {**node.permissions, **{f.name: node.fields.get(f.name) for f in kind.group_fields}}
    return [name for name, who in lists.items() if isinstance(who, list) and group in who]


def _remove_lost_groups(kind: NodeKind, context: Context, node: Node, groups: AbstractSet[int]) -> set[int]:
    mended, lost = drop_lost_groups(kind, node, groups)
    if lost:
        nodes.update(context.tx, kind.name, replace(mended, updated_at=context.at))
    return lost


# --- what the delete had changed elsewhere ------------------------------------------------------------------------


def _restore_children(
    kind: NodeKind, context: Context, root: Node, children: Sequence[SavedPosition], progress: Progress
) -> tuple[list[int], list[LeftRecord]]:
    """Move back, in their old order, the children that are still where the delete had moved them."""
    if not children:
        return [], []
    back: list[int] = []
    left: list[LeftRecord] = []
    above = nodes.find_ancestors(context.tx, kind.name, (root.id,))
    now = siblings.find_places(context.tx, kind.name, [place.id for place in children])
    moved_to = children[0].neighbours.get("to")  # a delete moves all of them to the same node
    reach = context.find_reach(kind)
    inside = None if reach is None else reach.find_inside(context.tx, list(now))
    for place in children:
        if inside is not None and place.id not in inside:
            continue  # a child that is out of reach now stays there, and is not reported
        if place.id not in now:
            why = say("It has been deleted since.")
        elif now[place.id][0] != moved_to:
            why = say("It has been moved elsewhere since.")
        elif place.id in above:
            why = say("The restored node is below it now.")
        else:
            back.append(place.id)
            continue
        left.append({"resource": kind.name, "id": place.id, "why": why})
    if back:
        positions = siblings.positions_on_leaving(now[child][1] for child in back)
        snapshots.save_moved(context.tx, kind.name, moved_to, dict(zip(back, positions, strict=True)), root.id)
        siblings.move_many(context.tx, kind.name, back, moved_to, root.id, context.at)
    progress.done(len(children))
    return back, left


def _restore_group(
    context: Context, group: int, changed: Iterable[Snapshot], progress: Progress
) -> tuple[list[tuple[str, int]], list[LeftRecord]]:
    """Restore a group's permissions, except those that have been changed since its delete."""
    kinds = context.environment.kinds_by_name
    back: list[tuple[str, int]] = []
    left: list[LeftRecord] = []
    for then in changed:
        progress.done()
        now = nodes.find(context.tx, then.kind, then.node.id)
        if now is None:
            left.append({"resource": then.kind, "id": then.node.id, "why": say("It has been deleted since.")})
            continue
        own = {f.name for f in kinds[then.kind].group_fields} if then.kind in kinds else set()
        permissions, missed = _add_group_again(group, then.node.permissions, now.permissions, set(then.node.permissions))
        fields, missed_fields = _add_group_again(group, then.node.fields, now.fields, own)
        if missed or missed_fields:
            why = say("Changed since then: {names}.", names=", ".join(missed + missed_fields))
            left.append({"resource": then.kind, "id": now.id, "why": why})
        if permissions != now.permissions or fields != now.fields:
            snapshots.save(context.tx, then.kind, now, "changed")
            nodes.update(context.tx, then.kind, replace(now, permissions=permissions, fields=fields, updated_at=context.at))
            back.append((then.kind, now.id))
    return back, left


def _add_group_again(
    group: int, then: Mapping[str, Any], now: Mapping[str, Any], names: AbstractSet[str]
) -> tuple[dict[str, Any], list[str]]:
    """Put a group back into the lists that named it, except those that have changed since.

    Returns all lists, and the names of those that have changed.
    """
    settled, missed = dict(now), []
    for name in sorted(names & now.keys()):
        who = then[name]
        if who == EVERYONE or not isinstance(who, list) or group not in who:
            continue
        if now[name] == without_groups(who, {group}):
            settled[name] = who
        else:
            missed.append(name)
    return settled, missed
