"""The event log: one row for each successful write, in the order of the commits.

`append` writes one; `read_page`, `search` and the `find_…` functions read them; `purge` deletes the oldest.
"""

from trellis.store.events.audit import find_by_request, search
from trellis.store.events.log import Event, append, count, find, find_bounds, find_timestamp, find_undoing, purge, read_page

__all__ = [
    "Event",
    "append",
    "count",
    "find",
    "find_bounds",
    "find_by_request",
    "find_timestamp",
    "find_undoing",
    "purge",
    "read_page",
    "search",
]
