"""The arithmetic of shelves: how siblings are dealt out to them, where one is cut, and whether they are sound.

Siblings stand on shelves of level 0, these on shelves of level 1, and so on up to one that holds the whole family. Each shelf
tells how many siblings stand on it, and how many before it on the shelf above. So a place is a sum over a few shelves, and
who comes or goes touches those behind it on its shelf and the shelves behind each of these. Pure: no rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

CAPACITY: Final = 64  # how many siblings stand on a shelf, or shelves on one, before it is cut in two
HEIGHT: Final = 3  # the highest level; what stands there is not cut, so that a place is never a sum over more


@dataclass(frozen=True, slots=True)
class Shelf:
    """A shelf of a family: `before` counts the siblings before it on the shelf `above`, `size` those on it."""

    id: int
    level: int
    above: int
    before: int
    size: int


def fill(capacity: int) -> int:
    """Give how many are put on a shelf when many are dealt out at once: there is room for more."""
    return max(1, capacity * 3 // 4)


def dealt(count: int, first: int, capacity: int) -> list[Shelf]:
    """Plan the shelves of a family of so many, with ids from `first` on: the leaves in their order, then those above them."""
    per = fill(capacity)
    sizes = [per] * (count // per) + ([count % per] if count % per else [])
    made: list[Shelf] = []
    level = 0
    while True:
        upper = first + len(sizes)
        group = len(sizes) if len(sizes) <= capacity or level + 1 >= HEIGHT else per
        sums: list[int] = []
        for start in range(0, len(sizes), group):
            *befores, total = accumulate(sizes[start : start + group], initial=0)
            for at, before in enumerate(befores, start):
                made.append(Shelf(first + at, level, upper + start // group, before, sizes[at]))
            sums.append(total)
        first, level, sizes = upper, level + 1, sums
        if len(sizes) == 1:
            return [*made, Shelf(first, level, 0, 0, count)]


def cut(starts: Sequence[int], *, at_end: bool) -> int:
    """Say how many siblings stay on a shelf that is cut in two; `starts` has how many stand before each thing on it.

    Where things come in their order, each at the end, only the last moves on, so that no shelf is left half empty.
    """
    return starts[-1 if at_end else len(starts) // 2]


def sound(shelves: Sequence[Shelf], standing: Mapping[int, int]) -> bool:
    """Say whether the shelves of one family agree with each other and with `standing`: leaf → how many siblings are there."""
    by_id = {shelf.id: shelf for shelf in shelves}
    tops = [shelf for shelf in shelves if shelf.above == 0]
    if len(tops) != 1 or not 1 <= tops[0].level <= HEIGHT or tops[0].before != 0:
        return False
    if {shelf.id: shelf.size for shelf in shelves if shelf.level == 0} != standing:
        return False
    things: dict[int, list[Shelf]] = {shelf.id: [] for shelf in shelves if shelf.level > 0}
    for shelf in shelves:
        if shelf.above:
            if shelf.above not in things or by_id[shelf.above].level != shelf.level + 1:
                return False
            things[shelf.above].append(shelf)
    return all(_add_up(by_id[above], on_it) for above, on_it in things.items())


def _add_up(above: Shelf, things: list[Shelf]) -> bool:
    things.sort(key=lambda shelf: shelf.before)
    starts = list(accumulate((shelf.size for shelf in things), initial=0))
    return [*(shelf.before for shelf in things), above.size] == starts and all(shelf.size > 0 for shelf in things)
