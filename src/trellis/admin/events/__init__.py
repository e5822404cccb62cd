"""The event log: searched, one event with what it has changed, and which events can be undone."""

from trellis.admin.events.diff import Change, contrast, told
from trellis.admin.events.pages import PAGES
from trellis.admin.events.undoable import deletion, standings

__all__ = ["PAGES", "Change", "contrast", "deletion", "standings", "told"]
