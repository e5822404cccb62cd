"""An event: built from a successful write, named by its type, serialised for readers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.fields import Input, Invalid, Suggestions, TextList, quote
from trellis.core.operation import Call, Context, Operation, Outcome
from trellis.core.verbs import SHARED, past_tense, singular_of
from trellis.errors import Fault, raise_faults
from trellis.sentences import mark, say
from trellis.store.engine import Transaction
from trellis.store.events import Event, OperationFilter, RecordEvent


def build_event(operation: Operation, call: Call, outcome: Outcome, at: str, change_set: int | None) -> Event:
    """Build the event of a successful write. The store assigns its number."""
    return Event(
        seq=0,
        at=at,
        operation=operation.name,
        actor=call.actor.serialize(),
        request_id=call.request_id,
        traceparent=call.traceparent,
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
        proposal=call.approval and call.approval.proposal,
        approved_by=call.approval and call.approval.by.serialize(),
    )


def changed_members(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the members in which two records differ, ignoring `updatedAt`."""
    return tuple(name for name in after if name != "updatedAt" and before.get(name) != after[name])


def save_change(
    context: Context,
    old: Any,
    new: Any,
    serialize: Callable[[Any], dict[str, Any]],
    update: Callable[[Transaction, Any], object],
    also: tuple[str, ...] = (),
) -> Outcome:
    """Write a stored record that has an `id` if something has changed; return the outcome of the operation that changed it.

    `also` names changes that the serialised record does not show, such as a new secret.
    """
    before, after = serialize(old), serialize(new)
    changed = changed_members(before, after) + also
    if not changed:
        return Outcome(before, happened=False)
    update(context.tx, replace(new, updated_at=context.at))
    after["updatedAt"] = context.at
    return Outcome(after, old.id, before, after, changed)


# --- event types -------------------------------------------------------------------------------------

PLACE: Final = frozenset({"parentId", "position", "path"})  # members; a move changes some of them, and nothing else


def event_type(event: Event) -> str:
    """Return the type of an event, such as `forum.created`. An update that changed only the place is `forum.moved`."""
    resource, _, name = event.operation.partition(".")
    verb = SHARED.get(name)
    moved = verb.moved if verb is not None and event.changed and PLACE.issuperset(event.changed) else ""
    return f"{singular_of(resource)}.{moved or past_tense(name)}"


def event_types(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Return the types of all events of these operations that webhooks can subscribe to."""
    sending = (one for one in operations if one.sends_events and not one.access.needs)
    return tuple(list_types(one for one in sending if not (one.verb is not None and one.verb.may_create)))


def _find_moved(operation: Operation) -> str:
    has_place = operation.kind is not None and bool(operation.kind.placement)
    return operation.verb.moved if has_place and operation.verb is not None else ""


@dataclass(frozen=True, slots=True)
class EventTypes:
    """One or several types of events: a JSON list, or `one,two`. Whether they exist is checked when the operation runs."""

    widget: str = "select"

    def parse(self, raw: Any) -> tuple[str, ...]:
        found = TextList().parse(raw)
        if not found:
            raise Invalid(say("must be one or more types of events, such as forum.created, not {raw}.", raw=quote(raw)))
        return found

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+\\.[a-z_]+$"}, "minItems": 1, "maxItems": 200}


def list_types(operations: Iterable[Operation]) -> dict[str, OperationFilter]:
    """Return the types of all events that these operations can cause, each with the condition for its events in the log."""
    found: dict[str, OperationFilter] = {}
    nothing = OperationFilter(frozenset(), frozenset(), frozenset(), PLACE)
    for operation in operations:
        if operation.writes and not operation.is_plan:
            name = frozenset((operation.name,))
            resource, _, second = operation.name.partition(".")
            moved = _find_moved(operation)
            found[f"{singular_of(resource)}.{past_tense(second)}"] = (
                nothing._replace(unless_only=name) if moved else nothing._replace(always=name)
            )
            if moved:
                found[f"{singular_of(resource)}.{moved}"] = nothing._replace(if_only=name)
    return found


_UNKNOWN: Final = {
    "type": mark("type: there are no events of the type {name}.{near}"),
    "operation": mark("operation: there are no events of the operation {name}.{near}"),
    "resource": mark("resource: there are no events of the resource {name}.{near}"),
}


def find_wanted(given: Input, operations: Iterable[Operation]) -> OperationFilter | None:
    """Return the condition for events of the requested types in the log; None if no type is requested.

    Refuses a type, an operation and a resource that no event can have: a program that followed such a feed would wait for ever.
    """
    asked = {"type": given.get("type", ())} | {name: (given.get(name),) for name in ("operation", "resource") if name in given}
    if not any(asked.values()):
        return None
    writes = [operation for operation in operations if operation.writes and not operation.is_plan]
    types = list_types(writes) if asked["type"] else {}
    known = {"type": types.keys(), "operation": {one.name for one in writes}, "resource": {one.resource for one in writes}}
    unknown = {field: next((name for name in names if name not in known[field]), None) for field, names in asked.items()}
    raise_faults(_refuse_name(field, name, known[field]) for field, name in unknown.items() if name is not None)
    if not types:
        return None
    always, if_only, unless_only, _ = zip(*(types[name] for name in asked["type"]), strict=True)
    nothing = frozenset[str]()
    return OperationFilter(nothing.union(*always), nothing.union(*if_only), nothing.union(*unless_only), PLACE)


def _refuse_name(field: str, name: str, known: Iterable[str]) -> Fault:
    near = Suggestions(sorted(known)).suggest(name)
    return Fault(field, "INVALID_VALUE", say(_UNKNOWN[field], name=quote(name), near=near))


def serialize_reference(one: RecordEvent) -> dict[str, Any]:
    """Serialise which event it is: for refusals of what is out of date because of it."""
    return {"event": one.event, "operation": one.operation, "resource": one.resource, "id": one.id, "at": one.at}


def show_event(event: Event, actor: Actor) -> dict[str, Any]:
    """Serialise an event for an actor who may see it, without the touched records that their role may not read."""
    return serialize_event(event) | {"touched": [one for one in event.touched if actor.sees(one["resource"])]}


def serialize_event(event: Event) -> dict[str, Any]:
    """Serialise an event."""
    return {
        "seq": event.seq,
        "type": event_type(event),
        "at": event.at,
        "operation": event.operation,
        "actor": event.actor,
        "requestId": event.request_id,
        "traceparent": event.traceparent,
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
        "proposal": event.proposal,
        "approvedBy": event.approved_by,
    }
