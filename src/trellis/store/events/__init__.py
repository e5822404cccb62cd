"""The event log: one row for each successful write, in the order of the commits.

`append` writes an event; `read_page`, `search` and the `find_…` functions read them; `purge` deletes the oldest.
"""

from trellis.store.events.arrivals import NEVER, find_arrivals
from trellis.store.events.change_sets import count_of_change_set, find_change_set, open_change_set, purge_change_sets
from trellis.store.events.inside import find_inside_or_deleted
from trellis.store.events.log import (
    Event,
    OperationFilter,
    append,
    append_many,
    count,
    find,
    find_many,
    find_newest_before,
    find_newest_numbers,
    find_newest_timestamp,
    find_span,
    find_timestamp,
    find_undoing,
    list_after,
    purge,
    read_page,
    select_page,
)
from trellis.store.events.pages import MOST_BYTES, walk, weigh_event
from trellis.store.events.records import (
    RecordEvent,
    count_records,
    find_by_numbers,
    find_last_change,
    find_last_changes,
    find_newest_number,
    find_since,
    find_since_of,
)
from trellis.store.events.scan import find_by_request, search
