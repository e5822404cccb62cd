"""The event log: what an operation leaves behind, what that is called, and the feed by which it is read."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from trellis.core.answers import Members, OrNull, Record, Several
from trellis.core.kind import NodeKind
from trellis.core.operation import Access, Act, Call, Operation, Outcome
from trellis.core.values import Boolean, Choice, Field, Integer, Moment, NodeId, Text, Words
from trellis.errors import REASONS, Fault, Refused, refuse_faults
from trellis.store import journal
from trellis.store.journal import Event


def event_of(operation: Operation, call: Call, outcome: Outcome, now: str) -> Event:
    """Make the event of a successful write; its sequence number comes from the store."""
    actor = call.actor
    return Event(
        seq=0,
        at=now,
        operation=operation.name,
        actor={"type": actor.type, "id": actor.id, "name": actor.name},
        request_id=call.request_id,
        reason=call.reason,
        resource=operation.resource,
        resource_id=outcome.resource_id,
        before=outcome.before,
        after=outcome.after,
        changed=outcome.changed,
        touched=outcome.touched,
        undoes=outcome.undoes,
        idempotency_key=call.idempotency_key,
    )


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the members in which two records differ, the time of change apart."""
    return tuple(name for name in after if name != "updatedAt" and before.get(name) != after[name])


# --- what happened, in a word -------------------------------------------------------------------------------------

_PLACE: Final = frozenset({"parentId", "position", "path"})


def type_of(event: Event) -> str:
    """Name what happened: `forum.created`, `category.moved`. An update that changed nothing but the place is a move."""
    resource, _, verb = event.operation.partition(".")
    moved = verb == "update" and bool(event.changed) and _PLACE.issuperset(event.changed)
    return f"{noun_of(resource)}.{'moved' if moved else _past(verb)}"


def all_types(kinds: Iterable[NodeKind]) -> tuple[str, ...]:
    """Give the names of everything that can happen to nodes of these kinds."""
    return tuple(
        f"{noun_of(kind.name)}.{past}"
        for kind in kinds
        for past in ("created", "updated", "moved", "deleted", "restored")
        if past != "moved" or kind.placement
    )


def noun_of(resource: str) -> str:
    """Give the singular of a resource: `forums` → `forum`, `categories` → `category`."""
    return resource[:-3] + "y" if resource.endswith("ies") else resource.removesuffix("s")


def _past(verb: str) -> str:
    return verb + ("d" if verb.endswith("e") else "ed")


# --- the feed -----------------------------------------------------------------------------------------------------

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
    Field("since", Moment(), "Only events at or after this moment."),
    Field("until", Moment(), "Only events before this moment."),
    Field(
        "order",
        Choice({"oldest": "Oldest first.", "newest": "Newest first."}),
        "Which end to begin at.",
        default="oldest",
    ),
)
_COLUMNS: Final = {name: name for name in ("operation", "resource", "since", "until")} | {"resourceId": "resource_id"}


def _list(act: Act) -> Outcome:
    act.given.demand()
    given, newest_first = act.given, act.given.get("order") == "newest"
    after, limit = given.get("after"), given.get("limit", _LIMIT)
    oldest, newest = journal.reach(act.tx)
    if after is not None and not newest_first:
        _judge_cursor(after, oldest, newest)
    filters = {column: given.get(name) for name, column in _COLUMNS.items() if name in given}
    found = journal.event_page(act.tx, filters, limit + 1, after, newest_first=newest_first)
    page, more = found[:limit], len(found) > limit
    end = None if newest_first else newest  # what a filter has passed over need not be looked at again
    return Outcome(
        {
            "results": [written(event) for event in page],
            "next": page[-1].seq if more else end,
            "more": more,
            "oldest": oldest if oldest <= newest else None,
        }
    )


def _judge_cursor(after: int, oldest: int, newest: int) -> None:
    """Refuse a cursor that would pass events over unseen: those that are purged, or those that a restored backup has lost."""
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


def written(event: Event) -> dict[str, Any]:
    """Write an event for a reader."""
    return {
        "seq": event.seq,
        "type": type_of(event),
        "at": event.at,
        "operation": event.operation,
        "actor": event.actor,
        "requestId": event.request_id,
        "idempotencyKey": event.idempotency_key,
        "reason": event.reason,
        "resource": event.resource,
        "resourceId": event.resource_id,
        "before": event.before,
        "after": event.after,
        "changed": event.changed,
        "touched": event.touched,
        "undoes": event.undoes,
    }


_ACTOR: Final = Members(
    (
        Field("type", Text(), "What it is: an API key, an administrator, the terminal."),
        Field("id", NodeId(nullable=True), "The id of the key or administrator."),
        Field("name", Text(), "What it was called."),
    )
)
_TOUCHED: Final = Several(
    (
        Field("resource", Text(), "The resource."),
        Field("id", NodeId(), "The record's id."),
        Field("how", Text(), "What became of it: deleted, moved, changed, restored or repaired."),
    )
)
_EVENT: Final = Several(
    (
        Field("seq", NodeId(), "Its sequence number: 1, 2, 3, … in the order of the changes, without gaps."),
        Field("type", Text(), "What happened, in a word: forum.created, forum.updated, forum.moved, forum.deleted, …."),
        Field("at", Moment(), "When."),
        Field("operation", Text(), "The operation that was run."),
        Field("actor", _ACTOR, "Who ran it."),
        Field("requestId", OrNull(Text()), "The `X-Request-Id` of the request."),
        Field("idempotencyKey", OrNull(Text()), "The `Idempotency-Key` of the request, by which its sender knows it again."),
        Field("reason", OrNull(Text(100_000)), "Why, as `X-Audit-Log-Reason` told."),
        Field("resource", Text(), "What it is about: the resource."),
        Field("resourceId", NodeId(nullable=True), "What it is about: the record's id."),
        Field("before", OrNull(Record()), "The record before; null for a new one."),
        Field("after", OrNull(Record()), "The record after; null for one that was deleted."),
        Field("changed", Words(), "The names of the members in which an update made a difference. A password is only named."),
        Field("touched", _TOUCHED, "What else the operation deleted, moved or changed."),
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
    """Give the operations of the event log."""
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
            verb="feed",
            path="/core/events",
            refusals=(("NO_LONGER_KEPT", REASONS["NO_LONGER_KEPT"].code),),
            answers=_ANSWERS,
        ),
    )
