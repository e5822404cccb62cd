"""The response cache: encoded responses, valid until something that they show changes, bounded in bytes."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol
from weakref import WeakValueDictionary

from trellis.core.operation import Operation
from trellis.http.api.request import Headers
from trellis.store.engine import Shown

# Bytes that an entry takes besides the bytes of its parts: its places in the dictionaries, the tuples, and the header of each
# object. Measured; see the test.
_OVERHEAD: Final = 1000
_SHOWN: Final = 400  # for each kind of which it shows something, and below, for each number there
_NUMBER: Final = 40
_RENEWAL: Final = 800  # for the function that renews the total

Name = tuple[str, bytes, str, str]  # path, query, the address of the service, the dialect of the answer and what the key sees


@dataclass(slots=True, weakref_slot=True)
class CachedResponse:
    """An encoded response: body, entity tag, the headers that go with it, and its content type.

    `shows` is what it shows of the nodes; None means that it depends on everything. `version` is a data version at which it is
    valid. `is_empty`: there is nothing yet of what was asked for, so that the caller may wait. `operation` is the operation that
    read it, if every request of this name gets this response, whatever else the request contains. `renew` turns an older response
    into one with the current total.
    """

    body: bytes
    tag: bytes
    headers: Headers = ()
    type: bytes = b"application/json"
    shows: tuple[Shown, ...] | None = None
    version: int = field(default=0, compare=False)
    is_empty: bool = False
    operation: Operation | None = field(default=None, compare=False)
    renew: "Callable[[CachedResponse], CachedResponse] | None" = field(default=None, compare=False)


class HasChanged(Protocol):
    """Returns whether something that a response shows has changed since a data version; with `but_total`, except a list's total."""

    def __call__(self, shown: tuple[Shown, ...] | None, since: int, /, *, but_total: bool = False) -> bool: ...


class ResponseCache:
    """Encoded responses, each found only while its data are unchanged; the least recently used one is evicted first.

    `has_changed` returns whether something that a response shows has changed since a data version. Keys and grants are checked
    before anything is looked up here, and a response is cached only if every key that may run the operation gets the same one. A
    response that is too large to be cached is found for as long as somebody is sending it.
    """

    def __init__(self, capacity: int, has_changed: HasChanged) -> None:
        self._capacity = capacity
        self._has_changed = has_changed
        self._used = 0
        self._entries: OrderedDict[Name, CachedResponse] = OrderedDict()
        self._shared: WeakValueDictionary[Name, CachedResponse] = WeakValueDictionary()

    @property
    def used(self) -> int:
        """The bytes that the entries take."""
        return self._used

    def __contains__(self, name: Name) -> bool:
        """Return whether a response is cached under a name, valid or not."""
        return name in self._entries

    def find(self, version: int, name: Name) -> CachedResponse | None:
        """Return the response cached or being sent under a name, if nothing that it shows has changed up to the data version."""
        cached = self._entries.get(name)
        if cached is None:
            cached = self._shared.get(name) if self._shared else None
            return None if cached is None or not self._is_right(cached, version) else cached
        if not self._is_right(cached, version):
            if cached.renew is None:
                self._remove(name, cached)
            return None
        self._entries.move_to_end(name)
        return cached

    def find_renewable(self, name: Name) -> CachedResponse | None:
        """Return a cached response if nothing but its total is out of date; otherwise remove it. To be called after `find`."""
        cached = self._entries.get(name)
        if cached is None or not self._has_changed(cached.shows, cached.version, but_total=True):
            return cached
        self._remove(name, cached)
        return None

    def _remove(self, name: Name, cached: CachedResponse) -> None:
        del self._entries[name]
        self._used -= _size(name, cached)

    def _is_right(self, cached: CachedResponse, version: int) -> bool:
        if cached.version != version:
            if self._has_changed(cached.shows, cached.version):
                return False
            cached.version = version
        return True

    def add(self, version: int, name: Name, response: CachedResponse) -> CachedResponse:
        """Cache a response that was made from data not older than `version`; return the one to send.

        If the data version has since gone on, the response stays valid unless something that it shows has changed: `find` checks
        that.
        """
        response.version = version
        known = self._entries.get(name) or self._shared.get(name)
        if known is not None:
            if known.tag == response.tag and known.headers == response.headers and known.body == response.body:
                if known.version < version:
                    self._used -= _size(name, known) if name in self._entries else 0
                    known.version, known.shows = version, response.shows
                    self._used += _size(name, known) if name in self._entries else 0
                return known
            if known.version > version:
                return response
            if self._entries.pop(name, None) is not None:
                self._used -= _size(name, known)
        # orjson returns its whole buffer, of which a response fills only a part: 8 KiB for a record of 500 bytes.
        response.body = bytes(memoryview(response.body))
        size = _size(name, response)
        if size > self._capacity // 8:
            self._shared[name] = response
            return response
        self._entries[name] = response
        self._used += size
        while self._used > self._capacity:
            self._used -= _size(*self._entries.popitem(last=False))
        return response


def _size(name: Name, response: CachedResponse) -> int:
    """Return about how many bytes of memory an entry takes."""
    headers = sum(len(part) + len(value) for part, value in response.headers)
    shown = sum(_SHOWN + _NUMBER * sum(map(len, (one.rows, one.above, one.orders, one.children))) for one in response.shows or ())
    renewal = 0 if response.renew is None else _RENEWAL + len(name[0]) + len(name[2])  # the URL
    return sum(map(len, name)) + len(response.body) + len(response.tag) + headers + shown + renewal + _OVERHEAD
