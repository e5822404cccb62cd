"""Alarms as webhooks send them: the type to subscribe to, and the message, which contains no more than is needed."""

from typing import Any, Final

from trellis.core.actor import SERIALIZED
from trellis.core.alarms.table import ALARMS, tell_outside
from trellis.core.fields import Field, NodeId, Text
from trellis.core.subscriptions import ALARM
from trellis.store.events import Event

MESSAGE: Final = (
    Field("event", NodeId(), "The number of the event that raised it, under which the panel shows more.", example=17),
    Field("sentence", Text(), "What has happened, for people.", example="Mira Holm created the API key Plugin."),
    Field("actor", SERIALIZED, "Who did it."),
    Field("resource", Text(), "What the alarm is about: keys, webhooks or admins.", example="keys"),
    Field("resourceId", NodeId(nullable=True), "The id of the record that the operation is about.", example=3),
)


def alarm_type(name: str) -> str:
    """Return the type of the message about an alarm: `new-key` → `alarm.new_key`."""
    return f"{ALARM}.{name.replace('-', '_')}"


ALARM_TYPES: Final = {alarm_type(rule.name): rule.name for rule in ALARMS}


def build_alarm_message(kind: str, event: Event) -> dict[str, Any]:
    """Return the message, of a type of alarm, about the event that raised it.

    It says who did what to which record. It contains no address, browser, login or grants, and no path of a webhook's URL.
    """
    name = ALARM_TYPES.get(kind, "")
    actor = {member: event.actor[member] for member in ("type", "id", "name")}
    data = {"event": event.seq, "sentence": tell_outside(name, event), "actor": actor}
    return {"type": kind, "timestamp": event.at, "data": {**data, "resource": event.resource, "resourceId": event.resource_id}}
