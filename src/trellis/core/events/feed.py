"""The feed: all events in order, read with a cursor."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from trellis.core.actor import ACTOR_TYPES, SERIALIZED, WITH_IDS
from trellis.core.bounds import is_own_only
from trellis.core.events.event import EventTypes, find_wanted, show_event
from trellis.core.events.inside import hide_outside
from trellis.core.fields import (
    MAX_ID,
    Boolean,
    Choice,
    Field,
    Integer,
    Invalid,
    ListOf,
    NodeId,
    Nullable,
    ObjectOf,
    Text,
    TextList,
    Timestamp,
    Type,
    parse_whole_number,
    quote,
)
from trellis.core.operation import Access, Basis, Context, Operation, Outcome, select_readable
from trellis.core.verbs import FEED
from trellis.errors import Refused, refuse_fault
from trellis.refusals import with_codes
from trellis.sentences import say
from trellis.store import events

_LIMIT: Final = 100
_LONGEST: Final = 1.0  # seconds for which events are examined, of which a filter may exclude millions


class ActorName(NamedTuple):
    """An actor: its type, and the id of a key or an administrator; without an id, any actor of the type."""

    type: str
    id: int | None


_NOBODY: Final = ActorName("key", 0)
_TYPES: Final = ", ".join(ACTOR_TYPES)


@dataclass(frozen=True, slots=True)
class ActorReference(Type):
    """An actor, written as its type and id, `key:3`, or all of a type: `key`, `admin`, `terminal`, `service`."""

    def parse(self, raw: Any) -> ActorName:
        if isinstance(raw, str) and raw in ACTOR_TYPES:
            return ActorName(raw, None)
        kind, _, number = raw.partition(":") if isinstance(raw, str) else ("", "", "")
        found = parse_whole_number(number)
        if kind not in WITH_IDS or found is None or number != str(found) or not 1 <= found <= MAX_ID:
            raise Invalid(
                say("must be an actor, such as key:3, or a type of actor ({types}), not {raw}.", types=_TYPES, raw=quote(raw))
            )
        return ActorName(kind, found)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^({'|'.join(ACTOR_TYPES)}|({'|'.join(WITH_IDS)}):[1-9][0-9]{{0,18}})$"}


_FIELDS: Final = (
    Field(
        "after",
        Integer(0, 2**53),
        "The cursor: only events after this number (before it, if newest first). Begin without it, then send the "
        "`next` of each response.",
    ),
    Field(
        "limit",
        Integer(1, 1000),
        "The number of events at most. There are fewer if they have more than 8 MiB of text together, or if a filter has excluded "
        "so many events that finding more would take too long; `more` is then true.",
        default=_LIMIT,
        example=_LIMIT,
    ),
    Field("type", EventTypes(), "Only events of this type, such as `forum.moved`, or of one of several, separated by commas."),
    Field("operation", Text(100), "Only events of this operation, such as forums.create."),
    Field("resource", Text(100), "Only events of this resource, such as forums."),
    Field("resourceId", NodeId(), "Only events of the record with this id. Each resource has its own sequence of ids."),
    Field("changeSet", NodeId(), "Only events of the change set with this id."),
    Field("requestId", Text(128), "Only events of the request with this `X-Request-Id`."),
    Field("actor", ActorReference(), "Only events of this actor, such as `key:3`, or of all of a type: `admin`, `terminal`."),
    Field("reason", Text(500), "Only events with exactly this reason."),
    Field("since", Timestamp(), "Only events at or after this time."),
    Field("until", Timestamp(), "Only events before this time."),
    Field(
        "order",
        Choice({"oldest": "Oldest first.", "newest": "Newest first."}),
        "The order of the events.",
        default="oldest",
    ),
    Field(
        "wait",
        Integer(0, 30),
        "How many seconds to wait if there is no event yet. The response is sent with the first event; if none occurs, it is "
        "empty, with the cursor to continue from.",
        default=0,
        for_agents=False,
    ),
)
_COLUMNS: Final = {name: name for name in ("operation", "resource", "actor", "reason", "since", "until")} | {
    "resourceId": "resource_id",
    "changeSet": "change_set",
    "requestId": "request_id",
}


def _list(context: Context) -> Outcome:
    given, newest_first = context.input, context.input.get("order") == "newest"
    after, limit = given.get("after"), given.get("limit", _LIMIT)
    oldest, newest = events.find_span(context.tx)
    if newest_first and given.get("wait"):
        raise refuse_fault("wait", "INVALID_VALUE", say("wait: waiting is not possible with order=newest. Leave out order=newest."))
    if after is not None and not newest_first:
        _check_cursor(after, oldest, newest)
    filters = {column: given.get(name) for name, column in _COLUMNS.items() if name in given} | _limit_to_own(context)
    if wanted := find_wanted(given, context.environment.operations.values()):
        filters["wanted"] = wanted
    bound = context.call.actor.bounds.get(context.call.operation)
    parts = None if bound is None or bound.under is None else bound.ids
    if parts is not None:
        filters["inside"] = parts
    if (permit := context.call.actor.permit) is not None:
        filters["resources"] = permit.resources
    search = events.search(context.tx, filters, limit, after, newest_first=newest_first, longest=_LONGEST)
    shown = search.found if parts is None else hide_outside(context.tx, search.found, parts)
    end = None if newest_first else newest  # events that the filter has excluded need not be examined again
    return Outcome(
        {
            "results": [_hide_unreadable(context, show_event(event, context.call.actor)) for event in shown],
            "next": end if search.next is None else search.next,
            "more": search.next is not None,
            "oldest": oldest if oldest <= newest else None,
        }
    )


def _limit_to_own(context: Context) -> dict[str, ActorName]:
    """Return the filter for events that the caller itself caused if its grant is limited to these; otherwise no filter."""
    actor = context.call.actor
    if not is_own_only(actor, context.call.operation):
        return {}
    own = ActorName(actor.type, actor.id or 0)
    return {"actor": own if context.input.get("actor", own) in {own, ActorName(actor.type, None)} else _NOBODY}


def _hide_unreadable(context: Context, event: dict[str, Any]) -> dict[str, Any]:
    """Leave out of an event the records of other kinds that it touched and the caller may not read, if it sees only its own events.

    Who may see the events of everybody knows of these records anyway.
    """
    if not is_own_only(context.call.actor, context.call.operation):
        return event
    return event | {"touched": select_readable(context, event["touched"], event["resource"])}


def _check_cursor(after: int, oldest: int, newest: int) -> None:
    """Refuse a cursor that would skip events: purged ones, or ones that a restored backup does not contain."""
    if after < oldest - 1:
        missed = (
            say("event {oldest} has", oldest=oldest - 1)
            if after == oldest - 2
            else say("events {after} to {oldest} have", after=after + 1, oldest=oldest - 1)
        )
        raise Refused(
            "NO_LONGER_KEPT",
            say(
                "after: {missed} been purged, so the events after {after} would have a gap. Read all records "
                "again and continue with after={newest}, or omit `after` to begin with the oldest event that is "
                "still there.",
                missed=missed,
                after=after,
                newest=newest,
            ),
            facts={"oldest": oldest, "newest": newest},
        )
    if after > newest:
        detail = say(
            "after: there is no event {after} yet; the newest is {newest}. The database may have been restored from a backup.",
            after=after,
            newest=newest,
        )
        raise refuse_fault("after", "INVALID_VALUE", detail)


_TOUCHED: Final = ListOf(
    (
        Field("resource", Text(), "The resource."),
        Field("id", NodeId(), "The record's id."),
        Field("how", Text(), "What happened to the record: made, deleted, moved, changed, restored, repaired or switched off."),
    )
)
EVENTS: Final = (
    Field("seq", NodeId(), "Its number: 1, 2, 3, … in the order of the changes, without gaps."),
    Field("type", Text(), "The type of event: forum.created, forum.updated, forum.moved, forum.deleted, …."),
    Field("at", Timestamp(), "When."),
    Field("operation", Text(), "The operation that was run."),
    Field("actor", SERIALIZED, "Who ran it."),
    Field("requestId", Nullable(Text()), "The `X-Request-Id` of the request."),
    Field("traceparent", Nullable(Text()), "The trace of the request, as the header `traceparent` of W3C Trace Context names it."),
    Field("idempotencyKey", Nullable(Text()), "The `Idempotency-Key` of the request, by which its sender can recognise it."),
    Field("reason", Nullable(Text(100_000)), "The reason, from the header `X-Audit-Log-Reason`."),
    Field("resource", Text(), "The resource that the event is about."),
    Field("resourceId", NodeId(nullable=True), "The id of the record that the event is about."),
    Field("before", Nullable(ObjectOf()), "The record before; null for a new one."),
    Field("after", Nullable(ObjectOf()), "The record after; null for one that was deleted."),
    Field("changed", TextList(), "The names of the members that an update has changed. Passwords are listed by name only."),
    Field("touched", _TOUCHED, "What else the operation created, deleted, moved or changed."),
    Field("undoes", NodeId(nullable=True), "The event that this one undid."),
    Field("changeSet", NodeId(nullable=True), "The id of the change set that it belongs to."),
    Field("proposal", NodeId(nullable=True), "The proposal that caused the event, if it needed approval."),
    Field("approvedBy", Nullable(SERIALIZED), "Who approved the proposal; `actor` is who made it."),
)
EVENT_LIST: Final = ListOf(EVENTS)
_EXAMPLE: Final = {
    "seq": 12,
    "type": "key.revoked",
    "at": "2026-01-31T09:30:00.000Z",
    "operation": "keys.revoke",
    "actor": {"type": "admin", "id": 1, "name": "Ada"},
    "requestId": "8f14e45fceea167a5a36dedd",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "idempotencyKey": None,
    "reason": "No longer used.",
    "resource": "keys",
    "resourceId": 7,
    "before": {"id": 7, "name": "Plugin", "state": "active"},
    "after": {"id": 7, "name": "Plugin", "state": "revoked"},
    "changed": ["state"],
    "touched": [],
    "undoes": None,
    "changeSet": None,
    "proposal": None,
    "approvedBy": None,
}
_ANSWERS: Final = (
    Field("results", EVENT_LIST, "The events, in order.", example=[_EXAMPLE]),
    Field(
        "next",
        Integer(0, 2**53, nullable=True),
        "The cursor for the next request. Null when reading newest first has reached the end.",
        example=12,
    ),
    Field("more", Boolean(), "Whether there may be more events to read now.", example=False),
    Field("oldest", NodeId(nullable=True), "The oldest event that is still there; null if there is none.", example=1),
)


def operations() -> tuple[Operation, ...]:
    """Return the operations of the event log."""
    return (
        Operation(
            name="events.list",
            summary="List events",
            doc="Returns who changed what, when and why: one event for each successful write to any resource, including keys. "
            "Events are numbered in the order of the changes, without gaps: a client that sends each response's `next` as `after` "
            "receives each of them exactly once. If events after the cursor have been purged, the response is a 410. With `Accept: "
            "application/x-ndjson` the response is one event per line, and the header `Next` is the cursor.",
            run=_list,
            fields=_FIELDS,
            access=Access(Basis.GRANTED, reads_nodes=True, is_about_events=True),
            verb=FEED,
            path="/core/events",
            refusals=with_codes("NO_LONGER_KEPT", "TOO_MANY_WAITING"),
            response_fields=_ANSWERS,
        ),
    )
