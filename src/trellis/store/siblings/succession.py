"""The positions of siblings that leave, or return, one after the other, computed for all of them at once."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence


def positions_on_leaving(positions: Iterable[int]) -> list[int]:
    """Return the position that each of some siblings has just before it leaves, when those before it in the list have left."""
    gone: list[int] = []
    found = []
    for position in positions:
        found.append(position - bisect_left(gone, position))
        insort(gone, position)
    return found


def positions_after_return(positions: Sequence[int], others: int) -> list[int]:
    """Return the positions of siblings after they were inserted, the last one in the list first, each at one of `positions`.

    A position beyond the end means the end. `others` is the number of siblings before. If nothing else has changed, this undoes
    `positions_on_leaving`.
    """
    taken: list[int] = []
    found = []
    for inserted_before, wanted in zip(range(len(positions) - 1, -1, -1), positions, strict=True):
        free = min(wanted, others + inserted_before)
        position = free + bisect_right(range(len(taken)), free, key=lambda n: taken[n] - n)
        found.append(position)
        insort(taken, position)
    return found
