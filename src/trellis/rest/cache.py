"""The response cache: encoded responses, valid for one data version, bounded in bytes."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from trellis.rest.request import Headers

# Bytes that an entry takes beside the bytes of its parts: it in the dictionaries, the tuples, and what each object has before
# its bytes. Measured; see the test.
_OVERHEAD: Final = 1000

Name = tuple[str, bytes, str, str]  # path, query, the address of the service, the dialect of the answer


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CachedResponse:
    """An encoded response: body, entity tag, the headers that go with it, and its content type."""

    body: bytes
    tag: bytes
    headers: Headers = ()
    type: bytes = b"application/json"


class ResponseCache:
    """The responses given under the current data version; the least recently used one is evicted first.

    Keys and grants are checked before anything is looked up here, and a response is cached only where every key that may run
    the operation gets the same one. A response that is too large to be cached is found for as long as somebody is sending it.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._used = 0
        self._version: int | None = None
        self._entries: OrderedDict[Name, CachedResponse] = OrderedDict()
        self._shared: WeakValueDictionary[Name, CachedResponse] = WeakValueDictionary()

    def find(self, version: int, name: Name) -> CachedResponse | None:
        """Return the response cached or being sent under a name, if nothing has changed since."""
        if version != self._version:
            self._version = version
            self._entries.clear()
            self._shared.clear()
            self._used = 0
            return None
        cached = self._entries.get(name)
        if cached is None:
            return self._shared.get(name) if self._shared else None
        self._entries.move_to_end(name)
        return cached

    def add(self, version: int, name: Name, response: CachedResponse) -> CachedResponse:
        """Cache a response that was made from data not older than `version`; return the one to send."""
        if version != self._version:
            return response
        if (known := self._entries.get(name) or self._shared.get(name)) is not None:
            return known
        # orjson hands out its whole buffer, of which a response fills a part: 8 KiB for a record of 500 bytes.
        response = replace(response, body=bytes(memoryview(response.body)))
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
    return sum(map(len, name)) + len(response.body) + len(response.tag) + headers + _OVERHEAD
