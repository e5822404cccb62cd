"""The operation that lists the alarms that somebody may see. How far administrators have read them is bookkeeping."""

from collections.abc import Collection
from concurrent.futures import Future
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.alarms.table import describe_alarm
from trellis.core.fields import Boolean, Field, Integer
from trellis.core.gate import Gate
from trellis.core.operation import Context, Operation, Outcome
from trellis.store import alarms, events
from trellis.store.alarms import Alarm
from trellis.store.events import Event

_LIMIT: Final = Field("limit", Integer(1, 200), "The number of alarms at most.", default=50)
_PAGE: Final = (
    _LIMIT,
    Field("before", Integer(1, 2**53, nullable=True), "Where to continue: the `next` of the previous list."),
    Field("unread", Boolean(), "Only alarms that you have not read.", default=False),
)


def operations() -> tuple[Operation, ...]:
    """Return the operations on alarms, for the panel and the terminal."""
    return (
        Operation(
            "alarms.view",
            "List alarms",
            "Returns what somebody should look at, newest first: new keys, webhooks and administrators, those that may do more "
            "than before, sign-ins from new browsers, second factors that were set up or removed. Each is about an event; an "
            "administrator sees those about records that their role may read, and those about themselves.",
            _view,
            _PAGE,
        ),
    )


def count_unread(gate: Gate, actor: Actor) -> int:
    """Count the alarms that an administrator may see and has not read: at most a hundred."""
    with gate.store.reading() as tx:
        return alarms.count_unread(tx, _resources_of(actor), actor.id or 0)


def mark_read(gate: Gate, admin: int, event: int) -> Future[None]:
    """Record that an administrator has read the alarms up to an event."""
    return gate.store.write(lambda tx: alarms.mark_read(tx, admin, event), quiet=True)


def _resources_of(actor: Actor) -> Collection[str] | None:
    return None if actor.permit is None else actor.permit.resources


def _view(context: Context) -> Outcome:
    given, actor = context.input, context.call.actor
    limit = given.get(_LIMIT.name, _LIMIT.default)
    read = alarms.find_read(context.tx, actor.id or 0) if actor.type == "admin" else 0
    own = actor.id if actor.type == "admin" else None
    unread = bool(given.get("unread"))
    after = read if unread else 0
    found = alarms.read_newest(context.tx, _resources_of(actor), own, limit + 1, (after, given.get("before")), only_news=unread)
    told = {event.seq: event for event in events.find_many(context.tx, [alarm.event for alarm in found])}
    results = [_serialize(alarm, told[alarm.event], actor, read) for alarm in found[:limit] if alarm.event in told]
    return Outcome({"results": results, "next": found[limit - 1].event if len(found) > limit else None})


def _serialize(alarm: Alarm, event: Event, actor: Actor, read: int) -> dict[str, Any]:
    after = event.after or {}
    return {
        "event": alarm.event,
        "name": alarm.name,
        "at": alarm.at,
        "sentence": describe_alarm(alarm.name, event),
        "address": after.get("address"),
        "agent": after.get("agent"),
        "resource": alarm.resource,
        "resourceId": alarm.resource_id,
        "isRead": alarm.event <= read or (actor.type == "admin" and alarm.own == actor.id),
        "mayOpen": actor.sees(alarm.resource),
    }
