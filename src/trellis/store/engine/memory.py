"""What a process remembers of the latest list queries, to be brought up to date by the next that asks the same."""

import threading
from collections import OrderedDict
from typing import Any, Final

_MOST: Final = 128  # queries that are remembered

Question = tuple[Any, ...]


class Memory:
    """What is known about the latest questions, at most so many. Safe to use from many threads."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self.searchable: bool | None = None  # whether there is an index for searching, once somebody has looked
        self._known: OrderedDict[Question, Any] = OrderedDict()
        self._guard = threading.Lock()

    def recall(self, question: Question) -> Any | None:
        """Give what was known when it was asked last."""
        with self._guard:
            if (known := self._known.get(question)) is not None:
                self._known.move_to_end(question)
            return known

    def keep(self, question: Question, known: Any) -> None:
        """Remember what is known now."""
        with self._guard:
            self._known[question] = known
            self._known.move_to_end(question)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
