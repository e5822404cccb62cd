"""An event: built from a successful write, named by its type, serialized for readers."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from trellis.core.operation import Call, Operation, Outcome
from trellis.core.verbs import SHARED, past_tense
from trellis.store.events import Event


def build_event(operation: Operation, call: Call, outcome: Outcome, now: str) -> Event:
    """Build the event of a successful write. Its sequence number comes from the store."""
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


def changed_members(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the members in which two records differ, `updatedAt` apart."""
    return tuple(name for name in after if name != "updatedAt" and before.get(name) != after[name])


# --- event types -------------------------------------------------------------------------------------

_PLACE: Final = frozenset({"parentId", "position", "path"})


def event_type(event: Event) -> str:
    """Return the type of an event, such as `forum.created`. An update that changed nothing but the position is `forum.moved`."""
    resource, _, name = event.operation.partition(".")
    verb = SHARED.get(name)
    moved = verb.moved if verb is not None and event.changed and _PLACE.issuperset(event.changed) else ""
    return f"{singular_of(resource)}.{moved or past_tense(name)}"


def event_types(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Return the names of everything that these operations can do to nodes."""
    return tuple(
        f"{singular_of(operation.resource)}.{name}"
        for operation in operations
        if operation.kind is not None and operation.verb is not None and operation.writes
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
    }
