"""Result counts and page anchors: how many nodes pass a filter, and where in an order some of them stand.

Nothing of it is believed as it is: each read brings what it uses up to date from the journal of changes, in its own
snapshot, or lets go of it. So it is exact, whichever process has written, and costs what has changed since.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from trellis.store.lists.filters import SORT, SortBy

FEW: Final = 2000  # ids that are remembered of one question
_COLUMNS: Final = ("id", "name_key", "created_at", "updated_at")  # of the rows of a delta

Order = tuple[SortBy, bool]  # what is sorted by, and whether downwards


class Anchor(NamedTuple):
    """A place in an order: that of a row there is or was, and how many rows stand before it."""

    rank: int
    key: Any
    id: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about a question as of change `seen`.

    How many rows answer it; which, if they are few; and anchors by order and rank.
    """

    seen: int
    total: int | None = None
    found: frozenset[int] | None = None
    anchors: Mapping[Order, tuple[Anchor, ...]] = field(default_factory=dict)

    def advanced(self, seen: int, out: Sequence[Any], into: Sequence[Any]) -> "Known":
        """Give what is known once some rows have gone out of the answer and others have come into it."""
        steps = [(row, -1) for row in out] + [(row, 1) for row in into]
        total = None if self.total is None else self.total + sum(step for _, step in steps)
        found = None if self.found is None else (self.found - {row[0] for row in out}) | {row[0] for row in into}
        if found is not None and len(found) > FEW:
            found = None
        return Known(seen, total, found, {order: _shifted(anchors, order, steps) for order, anchors in self.anchors.items()})

    def with_anchors(self, order: Order, new: Iterable[Anchor], apart: int) -> "Known":
        """Add anchors, as far as they are so many ranks apart from those there are."""
        anchors = list(self.anchors.get(order, ()))
        for anchor in new:
            at = bisect_left(anchors, anchor.rank, key=_rank)
            if all(abs(near.rank - anchor.rank) >= apart for near in anchors[max(0, at - 1) : at + 1]):
                anchors.insert(at, anchor)
        return Known(self.seen, self.total, self.found, {**self.anchors, order: tuple(anchors)})

    def nearest(self, order: Order, rank: int) -> Anchor | None:
        """Give the last anchor that does not stand behind a rank."""
        anchors = self.anchors.get(order, ())
        at = bisect_right(anchors, rank, key=_rank)
        return anchors[at - 1] if at else None


def _rank(anchor: Anchor) -> int:
    return anchor.rank


def _shifted(anchors: tuple[Anchor, ...], order: Order, steps: Iterable[tuple[Any, int]]) -> tuple[Anchor, ...]:
    """Count the rows before each anchor anew. Text is compared by code point, which is how both engines compare it here."""
    sort_by, descending = order
    column, sign = _COLUMNS.index(SORT[sort_by]), -1 if descending else 1
    rising = anchors[::sign]
    tokens = [(anchor.key, sign * anchor.id) for anchor in rising]
    more = [0] * (len(rising) + 1)  # how much more each has before it than the one before
    for row, step in steps:
        token = (row[column], sign * row[0])
        if descending:
            more[0] += step
            more[bisect_left(tokens, token)] -= step
        else:
            more[bisect_right(tokens, token)] += step
    shifted, by = list[Anchor](), 0
    for anchor, step in zip(rising, more, strict=False):
        by += step
        shifted.append(anchor._replace(rank=anchor.rank + by))
    return tuple(shifted[::sign])
