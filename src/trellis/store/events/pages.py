"""Pages of events, limited in number and in bytes: each event has a record before and after, and the records that it touched."""

from collections.abc import Generator
from contextlib import closing
from typing import Any, Final

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.events.log import Event
from trellis.store.nodes import AT_ONCE, weigh

MOST_BYTES: Final = 8 * 2**20  # of the events on a page; a page with a single event may exceed it
_FEW: Final = AT_ONCE // 2  # events that are read at once: each has a record before and after
_FEWER: Final = 10  # the same on an event loop
_TOUCHED: Final = 300  # bytes of one entry in `touched`, about


def weigh_event(event: Event) -> int:
    """Return approximately how many bytes of memory an event takes."""
    return weigh(event.before) + weigh(event.after) + _TOUCHED * len(event.touched)


class EventPage:
    """A page of at most `limit` events: `found` lists them, and `more` is true if the selection has further events."""

    def __init__(self, limit: int) -> None:
        self.found: list[Event] = []
        self.more = False
        self._limit = limit
        self._size = 0

    def read(self, tx: Transaction, select: sa.Select[Any]) -> None:
        """Add the selected events to the page until it is full. At most a few events are read beyond it."""
        left = self._limit + 1 - len(self.found)
        with closing(walk(tx, select, left)) as read:
            for event in read:
                self._size += weigh_event(event)
                tx.check_brief(self._size)
                self.more = len(self.found) == self._limit or (bool(self.found) and self._size > MOST_BYTES)
                if self.more:
                    return
                self.found.append(event)


def walk(tx: Transaction, select: sa.Select[Any], most: int | None = None) -> Generator[Event]:
    """Yield events one after the other, at most `most`, with only a few in memory.

    The first few are read at once, since usually there are no more, and a cursor takes several round trips on PostgreSQL.
    """
    if tx.is_brief:  # on SQLite, where a cursor costs nothing: no more is read than is needed to find out that it is much
        yield from _walk(tx, select if most is None else select.limit(most), yield_per=_FEWER)
        return
    first = _FEW if most is None else min(most, _FEW)
    read = yield from _walk(tx, select.limit(first))
    if read == first != most:
        yield from _walk(tx, select.offset(first).limit(None if most is None else most - first), yield_per=_FEW)


def _walk(tx: Transaction, select: sa.Select[Any], **options: Any) -> Generator[Event, None, int]:
    """Yield events; return their number."""
    read = 0
    with tx.connection.execute(select, execution_options=options) as rows:
        for row in rows:
            read += 1
            yield Event(*row)
    return read
