"""The operations with which the panel explains undo: the saved rows of changed records, and later events."""

from typing import Final

from trellis.core.events import serialize_with_undo
from trellis.core.fields import Field, Ids, Integer, NodeId, Text
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.undo.restore import get_event
from trellis.core.undo.undelete import lists_naming
from trellis.store import events, snapshots

_IDS: Final = Field("ids", Ids(), "The ids of the records.", required=True)
_RECORD: Final = (
    Field("resource", Text(100), "The resource, such as forums.", required=True),
    Field("resourceId", NodeId(), "The record's id.", required=True),
)
_LIMIT: Final = Field("limit", Integer(1, 100), "The number of events to examine at most.", default=20)


def history_operations() -> tuple[Operation, ...]:
    """Return the operations, all for the panel and the terminal."""
    return (
        Operation(
            "events.later",
            "List the later events that can be undone",
            "Returns the later events that changed the same record and can be undone, newest first.",
            _later,
            (_LIMIT,),
            has_target=True,
        ),
        Operation(
            "events.last_state",
            "Get the saved row of a record",
            "Returns the newest saved row of a record: the event that changed or deleted it, how, and its name before. "
            "Null if there is none.",
            _last_state,
            _RECORD,
        ),
        Operation(
            "events.deleted_names",
            "List the names of deleted records",
            "Returns the names and parents, by id, that records of an event's resource had before the event.",
            _deleted_names,
            (_IDS,),
            has_target=True,
        ),
        Operation(
            "events.lists_naming",
            "Find the permissions that named some groups",
            "Returns, for each group, the permissions and fields that named it in the rows that an event deleted or changed, and "
            "the number of these rows.",
            _lists_naming,
            (_IDS,),
            has_target=True,
        ),
    )


def _later(context: Context) -> Outcome:
    event = get_event(context.tx, context.call.target or 0, context.call.actor)
    later = snapshots.find_later_events(
        context.tx, event.resource, event.resource_id or 0, event.seq, context.input.get(_LIMIT.name, _LIMIT.default)
    )
    found = [one for seq in later if (one := events.find(context.tx, seq)) is not None]
    return Outcome([one for one in serialize_with_undo(context, found) if one["undo"] and one["undo"]["open"]])


def _last_state(context: Context) -> Outcome:
    given = context.input
    is_seen = context.call.actor.sees(given.get("resource", ""))
    last = snapshots.find_latest(context.tx, given.get("resource"), given.get("resourceId")) if is_seen else None
    return Outcome(None if last is None else {"event": last.seq, "how": last.change, "name": last.node.name})


def _deleted_names(context: Context) -> Outcome:
    event = get_event(context.tx, context.call.target or 0, context.call.actor)
    names = snapshots.find_names(context.tx, event.seq, event.resource, context.input.get("ids"))
    return Outcome({node: {"parentId": parent, "name": name} for node, (parent, name) in names.items()})


def _lists_naming(context: Context) -> Outcome:
    event = get_event(context.tx, context.call.target or 0, context.call.actor)
    kind = context.environment.kinds_by_name.get(event.resource)
    how: snapshots.Change = "changed" if event.after else "deleted"
    found: dict[int, tuple[dict[str, None], set[int]]] = {group: ({}, set()) for group in context.input.get("ids")}
    keys = [key for key in snapshots.list_keys(context.tx, event.seq, how) if key[0] == event.resource]
    for one in snapshots.walk(context.tx, event.seq, keys):
        for group, (lists, rows) in found.items():
            if kind is not None and (names := lists_naming(kind, one.node, group)):
                lists.update(dict.fromkeys(names))
                rows.add(one.node.id)
    return Outcome({group: {"lists": list(lists), "count": len(rows)} for group, (lists, rows) in found.items()})
