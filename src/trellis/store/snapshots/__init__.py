"""Snapshots: rows as they were before an event deleted or changed them, which undo restores.

They contain password hashes, so no interface shows them.
"""

from trellis.store.snapshots.leaves import delete_leaves
from trellis.store.snapshots.rows import (
    Change,
    Snapshot,
    count,
    count_by_event,
    find_by_event,
    find_by_ids,
    find_changed,
    find_later_events,
    find_latest,
    find_names,
    find_neighbours,
    find_next,
    find_next_of_each,
    find_oldest_event,
    find_saved_since,
    find_without_descendants,
    purge,
    restore,
    save,
    save_deleted,
    save_many,
    save_moved_children,
)

__all__ = [
    "Change",
    "Snapshot",
    "count",
    "count_by_event",
    "delete_leaves",
    "find_by_event",
    "find_by_ids",
    "find_changed",
    "find_later_events",
    "find_latest",
    "find_names",
    "find_neighbours",
    "find_next",
    "find_next_of_each",
    "find_oldest_event",
    "find_saved_since",
    "find_without_descendants",
    "purge",
    "restore",
    "save",
    "save_deleted",
    "save_many",
    "save_moved_children",
]
