"""Pages of events, which end before a number of events or of bytes: each has a record before and after, and what it touched."""

from collections.abc import Generator
from contextlib import closing
from typing import Any, Final

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.events.log import Event
from trellis.store.nodes import AT_ONCE, weigh

MOST_BYTES: Final = 8 * 2**20  # of the events on a page, unless it has only one
_FEW: Final = AT_ONCE // 2  # events that are read at once: each has a record before and after
_TOUCHED: Final = 300  # bytes of one record that an event has touched


def weigh_event(event: Event) -> int:
    """Return how many bytes of memory an event takes, about."""
    return weigh(event.before) + weigh(event.after) + _TOUCHED * len(event.touched)


class EventPage:
    """A page of at most `limit` events: those `found`, and whether there are `more` of what was selected."""

    def __init__(self, limit: int) -> None:
        self.found: list[Event] = []
        self.more = False
        self._limit = limit
        self._size = 0

    def read(self, tx: Transaction, select: sa.Select[Any]) -> None:
        """Read on, no more than what is on the page, and a few."""
        left = self._limit + 1 - len(self.found)
        with closing(walk(tx, select, left)) as read:
            for event in read:
                self._size += weigh_event(event)
                self.more = len(self.found) == self._limit or (bool(self.found) and self._size > MOST_BYTES)
                if self.more:
                    return
                self.found.append(event)


def walk(tx: Transaction, select: sa.Select[Any], most: int | None = None) -> Generator[Event]:
    """Read events one after the other, at most so many, without having more than a few in memory.

    The first few are read at once, since mostly there are no more, and a cursor takes PostgreSQL several round trips.
    """
    first = _FEW if most is None else min(most, _FEW)
    read = yield from _walk(tx, select.limit(first))
    if read == first != most:
        yield from _walk(tx, select.offset(first).limit(None if most is None else most - first), yield_per=_FEW)


def _walk(tx: Transaction, select: sa.Select[Any], **options: Any) -> Generator[Event, None, int]:
    """Read events; return how many there were."""
    read = 0
    with tx.connection.execute(select, execution_options=options) as rows:
        for row in rows:
            read += 1
            yield Event(*row)
    return read
