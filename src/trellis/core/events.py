"""The event log: what an operation leaves behind, and the operation that reads it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from trellis.core.kind import NodeKind
from trellis.core.operation import Access, Act, Call, Operation, Outcome
from trellis.core.values import Choice, Field, Integer, NodeId, Text
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
        idempotency_key=call.idempotency_key,
    )


_PAST: Final[Mapping[str, str]] = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "restore": "restored",
}
_PLACE: Final = frozenset({"parentId", "position", "path"})


def type_of(event: Event) -> str:
    """Name what happened: `forum.created`, `category.moved`. An update that changed nothing but the place is a move."""
    resource, _, verb = event.operation.partition(".")
    moved = verb == "update" and event.changed and _PLACE.issuperset(event.changed)
    return f"{noun_of(resource)}.{'moved' if moved else _PAST.get(verb, verb)}"


def all_types(kinds: Iterable[NodeKind]) -> tuple[str, ...]:
    """Give the names of everything that can happen to nodes of these kinds."""
    return tuple(
        f"{noun_of(kind.name)}.{past}"
        for kind in kinds
        for past in ("created", "updated", "moved", "deleted", "restored")
        if past != "moved" or kind.tree or kind.ordered
    )


def noun_of(resource: str) -> str:
    """Give the singular of a resource: `forums` → `forum`, `categories` → `category`."""
    return resource[:-3] + "y" if resource.endswith("ies") else resource.removesuffix("s")


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the members in which two records differ, the time of change apart."""
    return tuple(name for name in after if name != "updatedAt" and before.get(name) != after[name])


_FIELDS = (
    Field("after", Integer(0, 2**53), "Only events behind this sequence number (or before it, newest first)."),
    Field("limit", Integer(1, 1000), "How many at most.", default=100),
    Field("operation", Text(100), "Only events of this operation, such as forums.create."),
    Field("resource", Text(100), "Only events of this resource, such as forums."),
    Field("resourceId", NodeId(), "Only events of the record with this id."),
    Field(
        "order",
        Choice({"oldest": "Oldest first.", "newest": "Newest first."}),
        "Which end to begin at.",
        default="oldest",
    ),
)
_COLUMNS = {"operation": "operation", "resource": "resource", "resourceId": "resource_id"}


def _list(act: Act) -> Outcome:
    act.given.demand()
    filters = {column: act.given.get(name) for name, column in _COLUMNS.items() if name in act.given}
    newest = act.given.get("order") == "newest"
    found = journal.event_page(act.tx, filters, act.given.get("limit", 100), act.given.get("after"), newest_first=newest)
    return Outcome({"results": [written(event) for event in found]})


def written(event: Event) -> dict[str, Any]:
    """Write an event for a reader."""
    return {
        "seq": event.seq,
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
    }


def operations() -> tuple[Operation, ...]:
    """Give the operations of the event log."""
    return (
        Operation(
            name="events.list",
            summary="List events",
            doc="Who changed what, when and why: one event for each successful write.",
            run=_list,
            fields=_FIELDS,
            access=Access.INSIDE,
        ),
    )
