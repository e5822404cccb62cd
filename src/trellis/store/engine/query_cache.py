"""What a process keeps of its latest reads, to be brought up to date by the next that asks the same: a bounded LRU cache."""

import threading
from collections import OrderedDict
from typing import Any, Final

_CAPACITY: Final = 128  # entries; the least recently used goes first

Key = tuple[Any, ...]


class QueryCache:
    """A least-recently-used cache of at most `capacity` entries. Safe to use from many threads.

    It knows nothing of commits. What `trellis.store.lists` puts into it says as of which change it holds.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Key, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Any | None:
        """Return the entry of a key, None if there is none, and mark it as just used."""
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: Key, entry: Any) -> None:
        """Add an entry or replace it."""
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
