"""The event log: one event for each successful write, read by programs as a feed and by administrators as a searchable log."""

from trellis.core.events import audit, feed
from trellis.core.events.audit import FILTERS, may_be_purged
from trellis.core.events.causes import LONGEST_DELAY, list_caused
from trellis.core.events.event import (
    PLACE,
    changed_members,
    event_type,
    event_types,
    list_types,
    save_change,
    serialize_event,
    serialize_reference,
    show_event,
)
from trellis.core.events.feed import EVENT_LIST, EVENTS
from trellis.core.events.inside import hide_outside
from trellis.core.events.recorder import Recorder, TookTooLong, refuse_overdue
from trellis.core.events.undo_state import find_undoing_events, is_past_undo, refuse_undone, serialize_with_undo
from trellis.core.operation import Operation


def operations() -> tuple[Operation, ...]:
    """Return the operations of the event log."""
    return (*feed.operations(), *audit.operations())
