"""The event log: one row for each successful write, in the order of the commits.

`append` writes one; `page`, `find` and `search` read them; `purge` deletes the oldest.
"""

from trellis.store.events.audit import of_request, search
from trellis.store.events.log import Event, append, count, find, moment_of, page, purge, reach, undoers

__all__ = ["Event", "append", "count", "find", "moment_of", "of_request", "page", "purge", "reach", "search", "undoers"]
