"""The arithmetic of trees: positions and paths. Pure functions, without rows or requests."""

from collections.abc import Iterable, Mapping
from typing import Final

DEEPEST: Final = 100  # levels of a tree; limited because each record contains the names of all its ancestors


def position_beside(sibling: int, own: int | None, *, behind: bool) -> int:
    """Return the position before or behind the sibling at position `sibling`, after the node has left its own position.

    `own` is that position; None if the node is not yet a sibling.
    """
    left = sibling - 1 if own is not None and own < sibling else sibling
    return left + 1 if behind else left


def position_on_return(old: int, before: Iterable[int | None], behind: Iterable[int | None], own: int | None) -> int:
    """Return the position of a restored node: behind its nearest old predecessor, or else before its nearest old successor.

    `before` and `behind` are the present positions of its old neighbours, nearest first, with None for those that are gone. `own`
    is the node's position if it is already among these siblings. If no neighbour is left, the result is its old position.
    """
    for place in before:
        if place is not None:
            return position_beside(place, own, behind=True)
    for place in behind:
        if place is not None:
            return position_beside(place, own, behind=False)
    return old


def list_line(parents: Mapping[int, int | None], node: int | None) -> list[int]:
    """Return a node and its ancestors, the topmost last; none for the top level (None). `parents` maps id → parent's id."""
    line: list[int] = []
    while node is not None and len(line) <= len(parents):
        line.append(node)
        node = parents.get(node)
    return line


def format_path(node: int, line: Mapping[int, tuple[int | None, str]]) -> str:
    """Return the names from the top level down to a node, joined by ' > '. `line` maps id → (parent's id, name)."""
    names: list[str] = []
    at: int | None = node
    while at is not None and len(names) <= len(line):
        at, name = line[at]
        names.append(name)
    return " > ".join(reversed(names))
