"""Reverts a change: gives a record its old values back, unless it has been changed again since."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from trellis.core.events import changed_members, find_undoing_events
from trellis.core.nodes import NodeKind, Placement, apply_placement, count_children_in_the_way, refuse_taken, serialize_target
from trellis.core.operation import Context, Outcome
from trellis.core.undo.response import Done, build_outcome
from trellis.core.undo.undelete import drop_lost_groups, existing_groups, find_placement
from trellis.core.version import check_precondition
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store import events, nodes, snapshots
from trellis.store.events import Event
from trellis.store.nodes import Node
from trellis.store.snapshots import Snapshot

Difference = dict[str, Any]
MOVED: Final = frozenset({"parentId", "position"})  # every move changes one of these, and nothing else does
_PAGE: Final = 1000  # events that are read at a time


def revert(kind: NodeKind, context: Context, event: Event, then: Snapshot) -> Outcome:
    """Revert a record to its state before an event. Refuses if it was changed or deleted since, listing the differences."""
    now = nodes.find(context.tx, kind.name, then.node.id)
    if now is None:
        raise deleted_since(kind, context, then.node.id)
    before = serialize_target(kind, context, now)
    check_precondition(context.call.expected, before)
    groups = existing_groups(context)
    refuse_changed(kind, context, event, now, snapshots.find_next(context.tx, kind.name, now.id, event.seq), groups)
    place = _find_placement(kind, context, event, then, now)
    wanted, lost = drop_lost_groups(kind, then.node, groups)
    _check_leaf_only(kind, context, now, wanted)
    beside = None if place.stays else snapshots.find_neighbours(context.tx, kind.name, now)
    placed = apply_placement(context.tx, kind, now, place)
    if wanted.external_id != now.external_id:
        refuse_taken(kind, context, (wanted.external_id or kind.built_in.get(now.id),), now.id)
    new = put_content(wanted, placed)
    outcome = build_revert(kind, context, event, (now, before), (new, serialize_target(kind, context, new)), lost)
    if outcome.happened:
        snapshots.save(context.tx, kind.name, now, "changed", beside)
        nodes.update(context.tx, kind.name, new)
    return outcome


def put_content(wanted: Node, placed: Node) -> Node:
    """Return the `wanted` node with the id, place and times of the `placed` one."""
    content = replace(wanted, parent_id=placed.parent_id, position=placed.position)
    return replace(content, id=placed.id, created_at=placed.created_at, updated_at=placed.updated_at)


def build_revert(
    kind: NodeKind,
    context: Context,
    event: Event,
    now: tuple[Node, dict[str, Any]],
    new: tuple[Node, dict[str, Any]],
    lost: Iterable[int],
) -> Outcome:
    """Return the outcome of a revert. `now` and `new` are the node with its record before and after it.

    If anything has changed, `new` gets the time of the change.
    """
    changed = changed_members(now[1], new[1]) + tuple(
        f.name for f in kind.secrets if new[0].fields.get(f.name) != now[0].fields.get(f.name)
    )
    if not changed:
        return build_outcome(kind, event, None, Done(lost=lost), after=now[1])._replace(happened=False)
    new[0].updated_at = new[1]["updatedAt"] = context.at
    done = Done([new[0].id], lost=lost)
    return build_outcome(kind, event, new[0].id, done, before=now[1], after=new[1], changed=changed)


def _find_placement(kind: NodeKind, context: Context, event: Event, then: Snapshot, now: Node) -> Placement:
    if not MOVED.isdisjoint(event.changed):
        return find_placement(kind, context, then, now)
    if "parentId" in context.input:
        detail = say(
            "parentId: event {seq} did not move the {singular}, so undoing it does not either. Do not send parentId.",
            seq=event.seq,
            singular=kind.singular,
        )
        raise refuse_fault("parentId", "INVALID_PARENT", detail)
    return Placement(now.parent_id, stays=True)


def _check_leaf_only(kind: NodeKind, context: Context, now: Node, wanted: Node) -> None:
    """Refuse to revert a node with children to one that must not have any."""
    if not (count := count_children_in_the_way(context.tx, kind, now, wanted.fields)):
        return
    raise Refused(
        "CHANGED_SINCE",
        say(
            "Before the event it was {leaf}, which cannot have children, but now it has {count}: move or delete them first.",
            leaf=kind.leaf.one,
            count=count,
        ),
        facts={"differences": [{"field": "children", "then": 0, "now": count}]},
    )


# --- changed since ------------------------------------------------------------------------------------------------


def deleted_since(kind: NodeKind, context: Context, node: int) -> Refused:
    """Return the refusal to undo an event of a deleted record, naming the event that deleted it."""
    last = snapshots.find_latest(context.tx, kind.name, node)
    by = say(", by event {seq}: undo that first", seq=last.seq) if last is not None and last.change == "deleted" else ""
    facts: dict[str, Any] = {"differences": []} | ({"deletedBy": last.seq} if by and last is not None else {})
    return Refused(
        "CHANGED_SINCE",
        say("{singular} {node} has been deleted since{by}.", singular=say(kind.singular.capitalize()), node=node, by=by),
        facts=facts,
    )


def refuse_changed(
    kind: NodeKind, context: Context, event: Event, now: Node, later: Snapshot | None, groups: AbstractSet[int]
) -> None:
    """Refuse if a record has changed since an event. Shifts by siblings and deleted groups do not count.

    `later` is the record as it was before the next event that changed it; None if there was none.
    """
    if later is None:
        return
    differences = [
        one
        for one in _differences(kind, drop_lost_groups(kind, later.node, groups)[0], now)
        if one["field"] != "position" or any("position" in other.changed for other in _walk_since(kind, context, event, now.id))
    ]
    if not differences:
        return
    named = ", ".join(difference["field"] for difference in differences)
    last = next(_walk_since(kind, context, event, now.id), None)
    by = say(" (by event {seq})", seq=last.seq) if last is not None else ""
    raise Refused(
        "CHANGED_SINCE",
        say(
            "{singular} {id} has been changed again since event {seq}{by}: {named}. Undo the later changes "
            "first, or edit the record by hand.",
            singular=say(kind.singular.capitalize()),
            id=now.id,
            seq=event.seq,
            by=by,
            named=named,
        ),
        facts={"differences": differences},
    )


def _walk_since(kind: NodeKind, context: Context, event: Event, node: int) -> Iterator[Event]:
    """Yield the events of a record after an event, newest first, without those that have been undone and those that undid them."""
    about, before = {"resource": kind.name, "resource_id": node}, None
    while page := events.read_page(context.tx, about, _PAGE, before, newest_first=True):
        found = [one for one in page if one.seq > event.seq]
        undone = {one.undoes for one in found if one.undoes is not None and one.undoes > event.seq}  # they may be on a later page
        undone_by = find_undoing_events(context.tx, undone.union(one.seq for one in found))
        yield from (one for one in found if one.seq not in undone_by and undone_by.get(one.undoes or 0) != one.seq)
        if len(found) < _PAGE:
            return
        before = page[-1].seq


def _differences(kind: NodeKind, then: Node, now: Node) -> Iterator[Difference]:
    if then.name != now.name:
        yield {"field": "name", "then": then.name, "now": now.name}
    if then.external_id != now.external_id:
        yield {"field": "externalId", "then": then.external_id, "now": now.external_id}
    if then.managed_by != now.managed_by:
        yield {"field": "managedBy", "then": then.managed_by, "now": now.managed_by}
    if then.parent_id != now.parent_id:
        yield {"field": "parentId", "then": then.parent_id, "now": now.parent_id}
    elif then.position != now.position:
        yield {"field": "position", "then": then.position, "now": now.position}
    for field in kind.fields:
        old, new = then.fields.get(field.name), now.fields.get(field.name)
        if old != new:
            yield {"field": field.name} | ({} if field.write_only else {"then": old, "now": new})
    for option in kind.options:
        old, new = then.permissions.get(option), now.permissions.get(option)
        if old != new:
            yield {"field": f"permissions.{option}", "then": old, "now": new}
