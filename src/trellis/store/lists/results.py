"""Materialised results: how many nodes match a query, their ids if they are few, and anchors at known ranks in an order.

A result records the entry of the change journal for which it is valid. Each read that uses a result first brings it up to date,
in its own snapshot, or drops it. So it is never wrong, whichever process has written.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from trellis.store.lists.filters import SORT_COLUMNS, SortBy
from trellis.store.lists.journal import Delta

MAX_IDS: Final = 2000  # the most ids in a result; of more matches only the number is stored
DELTA_COLUMNS: Final = ("id", "name_key", "created_at", "updated_at")  # of the rows of a Delta

_rank: Final = attrgetter("rank")  # of an anchor
Order = tuple[SortBy, bool]  # the sort key, and whether descending


class Anchor(NamedTuple):
    """A place in an order: a sort key and an id, and the number of matching rows before it.

    The row may have been deleted: the key and the id still separate the rows before it from those after it.
    """

    rank: int
    key: Any
    id: int


@dataclass(frozen=True, slots=True)
class MaterialisedResult:
    """What is known about a query as of journal entry `seq`: the number of matches, their ids if few, anchors by order and rank.

    None means not yet known.
    """

    seq: int
    total: int | None = None
    ids: frozenset[int] | None = None
    anchors: Mapping[Order, tuple[Anchor, ...]] = field(default_factory=dict)

    def apply_delta(self, delta: Delta) -> "MaterialisedResult":
        """Return the result as of `delta.last`."""
        steps = [(row, -1) for row in delta.removed] + [(row, 1) for row in delta.added]
        total = None if self.total is None else self.total + sum(step for _, step in steps)
        ids = None if self.ids is None else (self.ids - {row[0] for row in delta.removed}) | {row[0] for row in delta.added}
        if ids is not None and len(ids) > MAX_IDS:
            ids = None
        return MaterialisedResult(
            delta.last, total, ids, {order: _shift(anchors, order, steps) for order, anchors in self.anchors.items()}
        )

    def add_anchors(self, order: Order, new: Iterable[Anchor], distance: int) -> "MaterialisedResult":
        """Return the result with those of the new anchors added that are at least `distance` ranks from every other anchor."""
        anchors = list(self.anchors.get(order, ()))
        for anchor in new:
            at = bisect_left(anchors, anchor.rank, key=_rank)
            if all(abs(near.rank - anchor.rank) >= distance for near in anchors[max(0, at - 1) : at + 1]):
                anchors.insert(at, anchor)
        return MaterialisedResult(self.seq, self.total, self.ids, {**self.anchors, order: tuple(anchors)})

    def find_anchor(self, order: Order, rank: int) -> Anchor | None:
        """Return the last anchor at or before a rank; None if there is none."""
        anchors = self.anchors.get(order, ())
        at = bisect_right(anchors, rank, key=_rank)
        return anchors[at - 1] if at else None


def _shift(anchors: tuple[Anchor, ...], order: Order, steps: Iterable[tuple[Any, int]]) -> tuple[Anchor, ...]:
    """Correct the ranks of anchors for rows that were removed (step -1) and added (1).

    A row changes the ranks of all anchors after it. Instead of adding to each, the step is recorded at the first of them, and
    a single pass sums up. Python compares text by code point, as both engines do in these columns (BINARY, and collation C).
    """
    sort_by, descending = order
    # Equal keys are sorted by ascending id in both directions. Descending anchors are reversed, which reverses their ids too: hence
    # the sign, which makes (key, sign × id) ascend in either case.
    column, sign = DELTA_COLUMNS.index(SORT_COLUMNS[sort_by]), -1 if descending else 1
    ascending = anchors[::sign]
    keys = [(anchor.key, sign * anchor.id) for anchor in ascending]
    changes = [0] * (len(ascending) + 1)  # by how much the shift of each anchor differs from that of the one before
    for row, step in steps:
        key = (row[column], sign * row[0])
        if descending:  # the row comes before the anchors with smaller keys, which begin the reversed sequence
            changes[0] += step
            changes[bisect_left(keys, key)] -= step
        else:
            changes[bisect_right(keys, key)] += step
    shifted, by = list[Anchor](), 0
    for anchor, change in zip(ascending, changes, strict=False):
        by += change
        shifted.append(anchor._replace(rank=anchor.rank + by))
    return tuple(shifted[::sign])
