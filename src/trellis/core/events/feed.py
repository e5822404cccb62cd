"""The feed: every event in its order, read by a cursor."""

from typing import Final

from trellis.core.events.event import serialize_event
from trellis.core.fields import (
    Boolean,
    Choice,
    Field,
    Integer,
    ListOf,
    NodeId,
    Nullable,
    ObjectOf,
    Record,
    Text,
    TextList,
    Timestamp,
)
from trellis.core.operation import Access, Context, Operation, Outcome
from trellis.core.verbs import FEED
from trellis.errors import Fault, Refused, refuse_faults
from trellis.refusals import with_codes
from trellis.store import events

_LIMIT: Final = 100
_FIELDS: Final = (
    Field(
        "after",
        Integer(0, 2**53),
        "The cursor: only events behind this sequence number (or before it, newest first). Begin without it, and send the "
        "`next` of each answer.",
    ),
    Field("limit", Integer(1, 1000), "How many at most.", default=_LIMIT, example=_LIMIT),
    Field("operation", Text(100), "Only events of this operation, such as forums.create."),
    Field("resource", Text(100), "Only events of this resource, such as forums."),
    Field("resourceId", NodeId(), "Only events of the record with this id; ids count for each resource apart."),
    Field("since", Timestamp(), "Only events at or after this moment."),
    Field("until", Timestamp(), "Only events before this moment."),
    Field(
        "order",
        Choice({"oldest": "Oldest first.", "newest": "Newest first."}),
        "Which end to begin at.",
        default="oldest",
    ),
)
_COLUMNS: Final = {name: name for name in ("operation", "resource", "since", "until")} | {"resourceId": "resource_id"}


def _list(context: Context) -> Outcome:
    context.input.demand()
    given, newest_first = context.input, context.input.get("order") == "newest"
    after, limit = given.get("after"), given.get("limit", _LIMIT)
    oldest, newest = events.find_bounds(context.tx)
    if after is not None and not newest_first:
        _check_cursor(after, oldest, newest)
    filters = {column: given.get(name) for name, column in _COLUMNS.items() if name in given}
    found = events.read_page(context.tx, filters, limit + 1, after, newest_first=newest_first)
    page, more = found[:limit], len(found) > limit
    end = None if newest_first else newest  # what a filter has passed over need not be looked at again
    return Outcome(
        {
            "results": [serialize_event(event) for event in page],
            "next": page[-1].seq if more else end,
            "more": more,
            "oldest": oldest if oldest <= newest else None,
        }
    )


def _check_cursor(after: int, oldest: int, newest: int) -> None:
    """Refuse a cursor that would skip events: those that were purged, or those that a restored backup does not have."""
    if after < oldest - 1:
        missed = f"event {oldest - 1} is" if after == oldest - 2 else f"events {after + 1} to {oldest - 1} are"
        raise Refused(
            "NO_LONGER_KEPT",
            f"after: {missed} no longer kept, so what follows {after} cannot be told without a gap. Read the records anew, and "
            f"begin again with after={newest}; or leave `after` out to read from the oldest event that is kept.",
            facts={"oldest": oldest, "newest": newest},
        )
    if after > newest:
        detail = f"after: there is no event {after} yet; the newest is {newest}. The database may have been restored from a backup."
        raise refuse_faults((Fault("after", "INVALID_VALUE", detail),))


_ACTOR: Final = ObjectOf(
    (
        Field("type", Text(), "What it is: an API key, an administrator, the terminal."),
        Field("id", NodeId(nullable=True), "The id of the key or administrator."),
        Field("name", Text(), "What it was called."),
    )
)
_TOUCHED: Final = ListOf(
    (
        Field("resource", Text(), "The resource."),
        Field("id", NodeId(), "The record's id."),
        Field("how", Text(), "What became of it: made, deleted, moved, changed, restored or repaired."),
    )
)
_EVENT: Final = ListOf(
    (
        Field("seq", NodeId(), "Its sequence number: 1, 2, 3, … in the order of the changes, without gaps."),
        Field("type", Text(), "What happened, in a word: forum.created, forum.updated, forum.moved, forum.deleted, …."),
        Field("at", Timestamp(), "When."),
        Field("operation", Text(), "The operation that was run."),
        Field("actor", _ACTOR, "Who ran it."),
        Field("requestId", Nullable(Text()), "The `X-Request-Id` of the request."),
        Field("idempotencyKey", Nullable(Text()), "The `Idempotency-Key` of the request, by which its sender knows it again."),
        Field("reason", Nullable(Text(100_000)), "Why, as `X-Audit-Log-Reason` told."),
        Field("resource", Text(), "What it is about: the resource."),
        Field("resourceId", NodeId(nullable=True), "What it is about: the record's id."),
        Field("before", Nullable(Record()), "The record before; null for a new one."),
        Field("after", Nullable(Record()), "The record after; null for one that was deleted."),
        Field("changed", TextList(), "The names of the members in which an update made a difference. A password is only named."),
        Field("touched", _TOUCHED, "What else the operation made, deleted, moved or changed."),
        Field("undoes", NodeId(nullable=True), "The event that this one took back."),
    )
)
_EXAMPLE: Final = {
    "seq": 12,
    "type": "forum.deleted",
    "at": "2026-01-31T09:30:00.000Z",
    "operation": "forums.delete",
    "actor": {"type": "key", "id": 1, "name": "Plugin"},
    "requestId": "8f14e45fceea167a5a36dedd",
    "idempotencyKey": None,
    "reason": None,
    "resource": "forums",
    "resourceId": 7,
    "before": {"id": 7, "name": "Garden diaries"},
    "after": None,
    "changed": [],
    "touched": [],
    "undoes": None,
}
_ANSWERS: Final = (
    Field("results", _EVENT, "The events, in their order.", example=[_EXAMPLE]),
    Field(
        "next",
        Integer(0, 2**53, nullable=True),
        "The cursor for the next request; null at the end of newest-first reading.",
        example=12,
    ),
    Field("more", Boolean(), "Whether there is more to read now.", example=False),
    Field("oldest", NodeId(nullable=True), "The oldest event that is kept; null if none is.", example=1),
)


def operations() -> tuple[Operation, ...]:
    """Return the operations of the event log."""
    return (
        Operation(
            name="events.list",
            summary="List events",
            doc="Who changed what, when and why: one event for each successful write, of every resource, keys included. "
            "Events are numbered in the order of the changes and without gaps: a reader that sends each answer's `next` as "
            "`after` sees every one of them once. A cursor behind which events are no longer kept is refused with 410.",
            run=_list,
            fields=_FIELDS,
            access=Access.GRANTED,
            verb=FEED,
            path="/core/events",
            refusals=with_codes("NO_LONGER_KEPT"),
            answers=_ANSWERS,
        ),
    )
