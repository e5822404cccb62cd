"""The event log for administrators: search by actor, operation, record and time; one event with its request."""

from datetime import datetime, timedelta
from typing import Any, Final

from trellis.core.actor import ACTOR_TYPES
from trellis.core.events.causes import LONGEST_DELAY, list_causes
from trellis.core.events.event import EventTypes, find_wanted
from trellis.core.events.undo_state import serialize_with_undo
from trellis.core.fields import Choice, Field, Input, Integer, NodeId, Text, Timestamp, invalid_id, shift_timestamp
from trellis.core.operation import Context, Operation, Outcome
from trellis.sentences import say
from trellis.store import events, requests
from trellis.store.events import Event

_APPROVE: Final = "proposals.approve"

FILTERS: Final = (
    Field("type", EventTypes(), "Only events of this type, such as forum.moved, or of one of several."),
    Field("operation", Text(100), "Only events of this operation, such as forums.create."),
    Field("resource", Text(100), "Only events of this resource, such as forums."),
    Field(
        "resourceId", NodeId(nullable=True), "Only events of the record with this id. Each resource has its own sequence of ids."
    ),
    Field(
        "actorType",
        Choice(ACTOR_TYPES),
        "Only events caused by this type of actor.",
    ),
    Field("actorId", NodeId(nullable=True), "Only events caused by the key or the administrator with this id."),
    Field("requestId", Text(128), "Only events of the request with this id."),
    Field("changeSet", NodeId(nullable=True), "Only events of the change set with this id."),
    Field("from", Timestamp(nullable=True), "Only events at or after this time."),
    Field("to", Timestamp(nullable=True), "Only events before this time."),
)
_LIMIT: Final = Field("limit", Integer(1, 500), "The number of events at most.", default=50)
_PAGE: Final = (
    _LIMIT,
    Field("before", Integer(1, 2**53, nullable=True), "Where to continue: the `next` of the previous list."),
)
_COLUMNS: Final = {
    "operation": "operation",
    "resource": "resource",
    "resourceId": "resource_id",
    "actorType": "actor_type",
    "actorId": "actor_id",
    "requestId": "request_id",
    "changeSet": "change_set",
    "from": "since",
    "to": "until",
}


def operations() -> tuple[Operation, ...]:
    """Return the operations with which the panel reads the event log."""
    return (
        Operation(
            "events.search",
            "Search the event log",
            "Returns events, newest first. A search that would take too long ends early and says where to continue.",
            _search,
            FILTERS + _PAGE,
        ),
        Operation(
            "events.get",
            "Get an event",
            "Returns an event, the request that caused it, and how many events its change set has.",
            _get,
            has_target=True,
        ),
    )


def _search(context: Context) -> Outcome:
    given = context.input
    filters: dict[str, Any] = {ours: given.get(name) for name, ours in _COLUMNS.items() if given.get(name)}
    sent = Input({name: value for name, value in given.values.items() if value})  # an empty value is no filter here
    if wanted := find_wanted(sent, context.environment.operations.values()):
        filters["wanted"] = wanted
    if (permit := context.call.actor.permit) is not None:
        filters["resources"] = permit.resources
    result = events.search(context.tx, filters, given.get(_LIMIT.name, _LIMIT.default), given.get("before"))
    return Outcome(
        {
            "results": serialize_with_undo(context, result.found),
            "next": result.next,
            "complete": result.complete,
            "searchedTo": result.searched_to,
        }
    )


def _get(context: Context) -> Outcome:
    event, actor = events.find(context.tx, context.call.target or 0), context.call.actor
    if event is None or not actor.sees(event.resource):
        raise invalid_id(say("event"), context.call.target, "1T107/2")
    request = _find_request(context, event) if actor.may("requests.get") else None
    resources = None if actor.permit is None else actor.permit.resources
    count = 0 if event.change_set is None else events.count_of_change_set(context.tx, event.change_set, resources)
    return Outcome(serialize_with_undo(context, [event])[0] | {"request": request, "changeSetCount": count})


def _find_request(context: Context, event: Event) -> int | None:
    """Return the number of the request that caused an event, or of the request that approved it if it needed approval."""
    by, name = (event.actor, event.operation) if event.approved_by is None else (event.approved_by, _APPROVE)
    if not event.request_id or by["type"] != "key":
        return None
    causes = list_causes(name, context.environment.operations.values())
    since = shift_timestamp(event.at, -LONGEST_DELAY)
    return requests.find_by_request_id(context.tx, causes, by["id"], event.request_id, (since, event.at))


def may_be_purged(context: Context, since: str) -> bool:
    """Return whether events since a time may have been purged."""
    oldest, _ = events.find_span(context.tx)
    kept_since = datetime.fromisoformat(context.now) - timedelta(days=context.environment.keep_events)
    first = events.find_timestamp(context.tx, oldest)
    return oldest > 1 and datetime.fromisoformat(since) < kept_since and (first is None or since < first)
