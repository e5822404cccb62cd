"""The arithmetic of trees: where a node goes, and what would create a cycle. Pure functions, without rows or requests."""

from collections.abc import Iterable, Mapping
from typing import Final

DEEPEST: Final = 100  # levels of a tree: each record has the names of all above it


def makes_cycle(node: int, line: Iterable[int]) -> bool:
    """Return whether a node cannot go under a parent; `line` is the parent with all its ancestors."""
    return node in line


def position_beside(sibling: int, own: int | None, *, behind: bool) -> int:
    """Return the place before or after the sibling in place `sibling`, once the node has left place `own` of the same row."""
    left = sibling - 1 if own is not None and own < sibling else sibling
    return left + 1 if behind else left


def position_on_return(old: int, before: Iterable[int | None], behind: Iterable[int | None], own: int | None) -> int:
    """Return the place of a restored node: after its nearest old predecessor, or else before its nearest old successor.

    `before` and `behind` are the current places of its old neighbours, nearest first, None for those that are gone; `own` is the
    node's place if it is in that row already. If no neighbour is left, the result is its old place.
    """
    for place in before:
        if place is not None:
            return position_beside(place, own, behind=True)
    for place in behind:
        if place is not None:
            return position_beside(place, own, behind=False)
    return old


def format_path(node: int, line: Mapping[int, tuple[int | None, str]]) -> str:
    """Return the names from the top level down to a node, joined by ' > '. `line` maps id → (parent's id, name)."""
    names: list[str] = []
    at: int | None = node
    while at is not None and len(names) <= len(line):
        at, name = line[at]
        names.append(name)
    return " > ".join(reversed(names))
