"""An event: built from a successful write, named by its type, serialized for readers."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from trellis.core.operation import Call, Operation, Outcome
from trellis.core.verbs import SHARED, past_tense
from trellis.store.events import Event


def build_event(operation: Operation, call: Call, outcome: Outcome, at: str, change_set: int | None) -> Event:
    """Build the event of a successful write. Its sequence number comes from the store."""
    return Event(
        seq=0,
        at=at,
        operation=operation.name,
        actor=call.actor.serialize(),
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
        change_set=change_set,
    )


def changed_members(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the members in which two records differ, ignoring `updatedAt`."""
    return tuple(name for name in after if name != "updatedAt" and before.get(name) != after[name])


# --- event types -------------------------------------------------------------------------------------

_PLACE: Final = frozenset({"parentId", "position", "path"})


def event_type(event: Event) -> str:
    """Return the type of an event, such as `forum.created`. An update that changed only the position is `forum.moved`."""
    resource, _, name = event.operation.partition(".")
    verb = SHARED.get(name)
    moved = verb.moved if verb is not None and event.changed and _PLACE.issuperset(event.changed) else ""
    return f"{singular_of(resource)}.{moved or past_tense(name)}"


def event_types(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Return the types of all events that these operations can cause on nodes."""
    return tuple(
        f"{singular_of(operation.resource)}.{name}"
        for operation in operations
        if operation.kind is not None and operation.verb is not None and operation.writes and not operation.needs
        for name in (operation.verb.event, operation.verb.moved if operation.kind.placement else "")
        if name
    )


def singular_of(resource: str) -> str:
    """Return the singular of a resource: `forums` → `forum`, `categories` → `category`."""
    return resource[:-3] + "y" if resource.endswith("ies") else resource.removesuffix("s")


def serialize_event(event: Event) -> dict[str, Any]:
    """Serialize an event."""
    return {
        "seq": event.seq,
        "type": event_type(event),
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
        "changeSet": event.change_set,
    }
