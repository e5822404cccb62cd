"""The positions of siblings that leave, or come in, one after the other: worked out for all of them at once."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence


def positions_on_leaving(positions: Iterable[int]) -> list[int]:
    """Return which position each of some siblings has just before it leaves, once those before it in the list have left."""
    gone: list[int] = []
    found = []
    for position in positions:
        found.append(position - bisect_left(gone, position))
        insort(gone, position)
    return found


def positions_after_return(positions: Sequence[int], others: int) -> list[int]:
    """Return the positions of siblings after each was inserted at one, or at the end if that is beyond it, the last of them first.

    `others` is how many siblings there were before. Where nothing else has changed, this undoes `positions_on_leaving`.
    """
    taken: list[int] = []
    found = []
    for inserted_before, wanted in zip(range(len(positions) - 1, -1, -1), positions, strict=True):
        free = min(wanted, others + inserted_before)
        position = free + bisect_right(range(len(taken)), free, key=lambda n: taken[n] - n)
        found.append(position)
        insort(taken, position)
    return found
