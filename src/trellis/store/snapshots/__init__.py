"""Snapshots: rows as they were before an event deleted or changed them, which undo restores.

They contain password hashes, so no interface shows them.
"""

from trellis.store.snapshots.leaves import delete_leaves
from trellis.store.snapshots.rows import (
    NEIGHBOURS,
    Change,
    SavedPosition,
    Snapshot,
    count,
    count_by_event,
    find_by_ids,
    find_last_changes,
    find_later_events,
    find_latest,
    find_names,
    find_neighbours,
    find_next,
    find_next_of_each,
    find_of_events,
    find_oldest_event,
    find_saved_since,
    list_external_ids,
    list_keys,
    list_places,
    purge,
    restore,
    restore_many,
    save,
    save_deleted,
    save_many,
    save_moved,
    save_moved_children,
    walk,
)
