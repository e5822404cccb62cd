"""The event log: one event for each successful write, told as a feed to programs and as a searchable log to administrators."""

from trellis.core.events import audit, feed
from trellis.core.events.audit import FILTERS
from trellis.core.events.event import build_event, changed_members, event_type, event_types, serialize_event, singular_of
from trellis.core.operation import Operation

__all__ = ["FILTERS", "build_event", "changed_members", "event_type", "event_types", "operations", "serialize_event", "singular_of"]


def operations() -> tuple[Operation, ...]:
    """Return the operations of the event log."""
    return (*feed.operations(), *audit.operations())
