"""The event log: one event for each successful write, told as a feed to programs and as a searchable log to administrators."""

from trellis.core.events import audit, feed
from trellis.core.events.audit import FILTERS
from trellis.core.events.event import all_types, differing, event_of, noun_of, type_of, written
from trellis.core.operation import Operation

__all__ = ["FILTERS", "all_types", "differing", "event_of", "noun_of", "operations", "type_of", "written"]


def operations() -> tuple[Operation, ...]:
    """Give the operations of the event log."""
    return (*feed.operations(), *audit.operations())
