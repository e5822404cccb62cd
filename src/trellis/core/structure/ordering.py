"""The fewest moves that put siblings into an order."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence


def find_moves(now: Sequence[int], wanted: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Yield the fewest moves that turn one order of ids into another: (id, the id that it goes behind; None for the first place).

    Both orders contain the same ids. The ids that do not move are a longest increasing subsequence.
    """
    stay = _find_longest_increasing([*map({node: index for index, node in enumerate(now)}.__getitem__, wanted)])
    staying = {now[index] for index in stay}
    before: int | None = None
    for node in wanted:
        if node not in staying:
            yield node, before
        before = node


def _find_longest_increasing(numbers: Sequence[int]) -> list[int]:
    """Return a longest increasing subsequence of distinct numbers, by patience sorting."""
    tops: list[int] = []  # the smallest number that ends a subsequence of each length
    links: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(tops, number)
        links[number] = tops[at - 1] if at else None
        tops[at : at + 1] = [number]
    found: list[int] = []
    last = tops[-1] if tops else None
    while last is not None:
        found.append(last)
        last = links[last]
    return found[::-1]
