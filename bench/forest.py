"""The forums that are measured: how many, and in which shape. Made by rule, so that every run and every peer has the same."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Shape = Literal["realistic", "wide", "flat", "deep"]
SHAPES: Final[dict[Shape, str]] = {
    "realistic": "each forum has none or 10 to 30 below it",
    "wide": "1,000 under each of the top level",
    "flat": "all at the top level",
    "deep": "chains of 50",
}
RARE: Final = "zwiebelfisch"  # a word in the names of few forums
DEPTH: Final = 50
_WORDS: Final = (
    "Garden diaries",
    "News",
    "Bird watching",
    "Repairs and tools",
    "Recipes for many",
    "Old maps",
    "Night sky",
    "Cycling",
    "Letters to the house",
    "Found and lost",
    "Looking for a flat",
    "Mushrooms",
    "Slow trains",
)
_ABOUT: Final = "<p>About {}: questions, answers, pictures and plans for the next meeting. New members are welcome.</p>"


@dataclass(frozen=True, slots=True)
class Forum:
    """A forum to be made: ids count from 1, parents come before their children, places are dense."""

    id: int
    parent_id: int | None
    position: int
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Where something stands in a forest: the ends of lines of 50, and the tops of subtrees of 1 % of all."""

    deepest: int
    subtrees: tuple[int, ...]


def parents_of(shape: Shape, count: int, seed: int = 4) -> list[int | None]:
    """Return the parent of each of so many forums, by their numbers from 0; None is the top level."""
    if shape == "flat":
        return [None] * count
    if shape == "deep":
        return [None if number % DEPTH == 0 else number - 1 for number in range(count)]
    if shape == "wide":
        tops = max(1, -(-count // 1001))
        return [None if number < tops else (number - tops) // 1000 for number in range(count)]
    dice = random.Random(seed)
    found: list[int | None] = [None] * min(count, dice.randint(10, 30))
    parent = 0
    while len(found) < count:
        found.extend([parent] * min(dice.randint(10, 30), count - len(found)))
        parent += 1
    return found


def _below(start: int, count: int) -> list[int | None]:
    """Return the parents of a subtree's nodes, numbered from `start`: 20 below each."""
    return [None, *(start + (number - 1) // 20 for number in range(1, count))]


def forest(shape: Shape, count: int, subtrees: int = 3) -> tuple[Iterator[Forum], Landmarks]:
    """Return so many forums in a shape; among them a line of 50, and some subtrees of 1 % of all nodes each."""
    each = max(1, count // 100)
    line = min(DEPTH, count // 10)
    parents = parents_of(shape, count - subtrees * each - line)
    tops = []
    for _ in range(subtrees):
        tops.append(len(parents) + 1)
        parents += _below(len(parents), each)
    start = len(parents)
    parents += [None if number == 0 else start + number - 1 for number in range(line)]
    return _forums(parents), Landmarks(len(parents), tuple(tops))


def _forums(parents: Sequence[int | None]) -> Iterator[Forum]:
    children: dict[int | None, int] = {}
    rare = max(1, len(parents) // 5)
    for number, parent in enumerate(parents):
        place = children.get(parent, 0)
        children[parent] = place + 1
        word = _WORDS[number % len(_WORDS)]
        name = f"{word} {RARE if number % rare == rare // 2 else 'no.'} {number + 1}"
        yield Forum(number + 1, None if parent is None else parent + 1, place, name, _ABOUT.format(word))
