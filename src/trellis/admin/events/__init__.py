"""The event log: searched, and one event with what it changed."""

from trellis.admin.events.diff import Change, compare_states, shown_members
from trellis.admin.events.pages import PAGES

__all__ = ["PAGES", "Change", "compare_states", "shown_members"]
