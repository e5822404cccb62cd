"""Undoes the creation of records: deletes them, unless they have been changed since."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from trellis.core.events import is_past_undo
from trellis.core.nodes import (
    NodeKind,
    Unfit,
    delete_rows,
    find_naming,
    find_parent,
    remove_group,
    serialize_target,
)
from trellis.core.operation import Context, Outcome, select_readable
from trellis.core.undo.response import Done, build_outcome
from trellis.core.undo.revert import deleted_since, refuse_changed
from trellis.core.undo.undelete import existing_groups
from trellis.core.version import check_precondition
from trellis.errors import Refused, refuse_fault
from trellis.sentences import join, say, say_many
from trellis.store import events, nodes, siblings, snapshots
from trellis.store.events import Event
from trellis.store.nodes import Node

_CREATED: Final = frozenset({"made", "restored"})
_NAMED: Final = 3  # records that a refusal names
Touched = Sequence[Mapping[str, Any]]


def delete_made(kind: NodeKind, context: Context, event: Event) -> Outcome:
    """Delete what an event created or restored. Refuses if any of it was changed, moved or deleted since, or is in use.

    If the event was an undo, the children that it had moved back return to where it had found them, and a group that it had
    restored is removed from the permissions again.
    """
    root = nodes.find(context.tx, kind.name, event.resource_id or 0)
    if root is None:
        raise deleted_since(kind, context, event.resource_id or 0)
    before = serialize_target(kind, context, root)
    check_precondition(context.call.expected, before)
    if "parentId" in context.input:
        detail = say(
            "parentId: event {seq} created the {singular}, so undoing the event deletes it. Do not send parentId.",
            seq=event.seq,
            singular=kind.singular,
        )
        raise refuse_fault("parentId", "INVALID_PARENT", detail)
    _refuse_changed_records(kind, context, event, root)
    if kind.is_group:
        _refuse_named(kind, context, event, root)
    moved = _move_children_again(kind, context, event, root)
    below = nodes.find_descendants(context.tx, kind.name, root.id) if kind.tree else []
    _refuse_others_below(kind, event, root, below)
    delete_rows(kind, context, root, below)
    changed = remove_group(context, root.id) if kind.is_group else []
    done = Done(deleted=[root.id, *below], moved=moved, regrouped=changed)
    return build_outcome(kind, event, root.id, done, before=before)


def _find_touched(event: Event, how: AbstractSet[str]) -> Touched:
    return [one for one in event.touched if one["how"] in how]


def _move_children_again(kind: NodeKind, context: Context, event: Event, root: Node) -> list[int]:
    """Undo the return of children that an undo had moved back: move them to where it had found them, and return their ids."""
    moved = [one["id"] for one in _find_touched(event, {"moved"})]
    if not moved:
        return []
    _require_kept(kind, context, event, root)
    kept = {one.id: one for one in snapshots.list_places(context.tx, event.seq, kind.name)}
    if len(kept) < len(moved):
        raise _no_longer_kept(kind, context, event, root)
    now = siblings.find_children(context.tx, kind.name, root.id)
    (target_id,) = {kept[child].parent_id for child in moved} if set(now) == set(moved) else {None}
    target = None if target_id is None else find_parent(kind, context, target_id, root, of_children=True)
    if target is None or isinstance(target, Unfit):
        raise _refuse_children(kind, event, root, len(moved), len(now))
    snapshots.save_moved_children(context.tx, kind.name, root.id, target.node.id)
    others = siblings.count_children(context.tx, kind.name, target.node.id)
    positions = siblings.positions_after_return([kept[child].position for child in moved], others)
    siblings.move_many(context.tx, kind.name, moved, root.id, target.node.id, context.at, positions)
    return moved


def _refuse_others_below(kind: NodeKind, event: Event, root: Node, below: Sequence[int]) -> None:
    made = {one["id"] for one in _find_touched(event, _CREATED)}
    if more := set(below) - made:
        raise _refuse_children(kind, event, root, len(made), len(below), others=len(more))


def _refuse_children(kind: NodeKind, event: Event, root: Node, then: int, now: int, others: int | None = None) -> Refused:
    many = kind.plural
    detail = (
        say(
            "The {several} below {singular} {id} are not those that event {seq} moved there, or their old parent is gone: move "
            "or delete them first.",
            several=many,
            singular=kind.singular,
            id=root.id,
            seq=event.seq,
        )
        if others is None
        else say_many(
            others,
            "{count:,} {noun} that event {seq} did not create is now below {singular} {id}: move or delete it first.",
            "{count:,} {noun} that event {seq} did not create are now below {singular} {id}: move or delete them first.",
            noun=kind.singular if others == 1 else many,
            seq=event.seq,
            singular=kind.singular,
            id=root.id,
        )
    )
    return Refused("CHANGED_SINCE", detail, facts={"differences": [{"field": "children", "then": then, "now": now}]})


def _refuse_named(kind: NodeKind, context: Context, event: Event, root: Node) -> None:
    """Refuse to delete a group that permissions have named since, because they would lose it."""
    expected = {(one["resource"], one["id"]) for one in _find_touched(event, {"changed"})}
    now = find_naming(context, root.id)
    if since := sorted(now - expected):
        readable = select_readable(context, [{"resource": name, "id": number} for name, number in since])
        shown = [f"{one['resource']} {one['id']}" for one in readable[:_NAMED]]
        shown += [say_many(more, "1 other", "{count} others")] if (more := len(since) - len(shown)) else []
        raise Refused(
            "CHANGED_SINCE",
            say(
                "{singular} {id} has been used since event {seq} by {shown}: remove it there first, or delete it.",
                singular=say(kind.singular.capitalize()),
                id=root.id,
                seq=event.seq,
                shown=join(shown, ", "),
            ),
            facts={"differences": [{"field": "namedBy", "then": len(expected), "now": len(now)}]},
        )


def _refuse_changed_records(kind: NodeKind, context: Context, event: Event, root: Node) -> None:
    """Refuse if a record that the event created or restored was changed or deleted since."""
    made = [one["id"] for one in _find_touched(event, _CREATED)]
    groups, reach = existing_groups(context), context.find_reach(kind)
    for ids in nodes.split_into_batches([root.id, *made], nodes.AT_ONCE):
        if reach is not None and not events.find_inside_or_deleted(context.tx, kind.name, reach.roots, ids).issuperset(ids):
            told = say("Something that event {seq} created is no longer where the caller may change it.", seq=event.seq)
            raise Refused("CHANGED_SINCE", told, facts={"differences": []})
        there = nodes.find_by_ids(context.tx, kind.name, ids)
        later = snapshots.find_next_of_each(context.tx, kind.name, ids, event.seq)
        for number in ids:
            if (now := there.get(number)) is None:
                raise deleted_since(kind, context, number)
            # A saved row equal to the current one was restored by an undo. A record without saved rows is as it was created.
            if now.updated_at != event.at or (number in later and later[number].node != now):
                _require_kept(kind, context, event, now)
                refuse_changed(kind, context, event, now, later.get(number), groups)


def _require_kept(kind: NodeKind, context: Context, event: Event, now: Node) -> None:
    """Refuse if details of changes since the event may have been purged."""
    if is_past_undo(context, event.at):
        raise _no_longer_kept(kind, context, event, now)


def _no_longer_kept(kind: NodeKind, context: Context, event: Event, now: Node) -> Refused:
    return Refused(
        "NO_LONGER_KEPT",
        say_many(
            context.environment.keep_snapshots,
            "{singular} {id} has been changed since event {seq}, and details of changes are kept for only {count:,} day.",
            "{singular} {id} has been changed since event {seq}, and details of changes are kept for only {count:,} days.",
            singular=say(kind.singular.capitalize()),
            id=now.id,
            seq=event.seq,
        ),
    )
