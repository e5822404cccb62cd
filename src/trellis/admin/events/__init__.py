"""The event log: search, and one event with its changes."""

from trellis.admin.events.diff import Effort, MemberChange, changed_labels, compare_states, event_changes, shown_members
from trellis.admin.events.pages import PAGES
