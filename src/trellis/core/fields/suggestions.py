"""Suggestions for unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from trellis.sentences import say

_MOST: Final = 5  # names of one request that are compared with all known ones, which takes up to a millisecond each
_LONGEST: Final = 100  # characters; a longer name is not a misspelt one


class Suggestions:
    """Finds the nearest known name for the first few unknown names of a request."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = tuple(known)
        self._left = _MOST

    @property
    def are_used_up(self) -> bool:
        """Whether the request has had so many unknown names that nothing more is suggested."""
        return not self._left

    def find(self, name: str) -> str | None:
        """Return the most similar known name; None if none is similar, or if the request had too many unknown names before."""
        if not self._left:
            return None
        self._left -= 1
        near = get_close_matches(name, self._known, 1) if len(name) <= _LONGEST else []
        return near[0] if near else None

    def suggest(self, name: str) -> str:
        """Return the most similar known name as a sentence to add to a refusal; "" where `find` returns None."""
        return "" if (near := self.find(name)) is None else say(" Did you mean {near}?", near=near)
